//! Runs every example and checks its output. `cargo test -p optimus-examples` builds the examples
//! first. With `--test examples`, cargo does not build them.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use optimus_testkit::{Proc, RedisServer, eventually, shared_redis};

/// The time limit for a step that takes a second or two on an idle machine.
const SOON: Duration = Duration::from_secs(20);

async fn succeeds(proc: &mut Proc) {
    let status = proc.wait(SOON).await;
    assert!(status.success(), "{status}:\n{}", proc.lines().join("\n"));
}

/// Returns the orders of the lines that contain `what`, such as `packed`.
fn orders(proc: &Proc, what: &str) -> BTreeSet<u32> {
    let lines = proc.lines();
    let matching = lines.iter().filter(|line| line.contains(what));
    let number = |line: &String| {
        let (_, order) = line.split_once("order=")?;
        order.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    matching.filter_map(number).collect()
}

/// Writes two texts, a link to each, and a file that is not text.
fn few_files(folder: &Path) {
    fs::write(folder.join("two.txt"), "two words").unwrap();
    fs::create_dir(folder.join("deeper")).unwrap();
    fs::write(folder.join("deeper/three.txt"), "these three words").unwrap();
    fs::write(folder.join("broken.bin"), [0xff, 0xfe, 0x00, 0xd8]).unwrap();
    for skipped in [".git", "target"] {
        fs::create_dir(folder.join(skipped)).unwrap();
        fs::write(folder.join(skipped).join("no.txt"), "not these words").unwrap();
    }
    std::os::unix::fs::symlink(folder.join("two.txt"), folder.join("again.txt")).unwrap();
    std::os::unix::fs::symlink(folder.join("deeper"), folder.join("link")).unwrap();
    std::os::unix::fs::symlink(folder, folder.join("deeper/up")).unwrap();
}

async fn quickstart_counts_a_folder(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    few_files(folder.path());
    let mut quickstart = Proc::built("quickstart").arg(folder.path()).arg(url).start();
    succeeds(&mut quickstart).await;
    for row in ["files ┆ 5", "words ┆ 5", "retries ┆ 2", "dead ┆ 1", "duplicates ┆ 2"] {
        let (what, count) = row.split_once(" ┆ ").unwrap();
        let line = quickstart.wait_for_line(&format!("│ {what}"), SOON).await;
        assert!(line.contains(&format!("┆ {count} ")), "{row} is not {line}");
    }
    quickstart.wait_for_line("broken.bin: ", SOON).await;
}

#[tokio::test]
async fn quickstart_counts_a_folder_in_memory() {
    quickstart_counts_a_folder("memory://quickstart").await;
}

#[tokio::test]
async fn quickstart_counts_a_folder_through_redis() {
    quickstart_counts_a_folder(shared_redis().url()).await;
}

/// The programs of users are built without optimization and need more of it than these tests. A
/// thread has 2 MiB.
#[tokio::test]
async fn a_worker_needs_little_of_the_stack_of_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let quickstart = Proc::built("quickstart").arg(folder.path()).arg("memory://stack");
    succeeds(&mut quickstart.env("RUST_MIN_STACK", "300000").start()).await;
}

#[tokio::test]
async fn quickstart_counts_this_repository_by_default() {
    let mut quickstart = Proc::built("quickstart").env("OPTIMUS_URL", "memory://q").start();
    succeeds(&mut quickstart).await;
    let files = quickstart.wait_for_line("│ files", SOON).await;
    let files: String = files.chars().filter(char::is_ascii_digit).collect();
    assert!(files.parse::<u32>().unwrap() > 100, "{files}");
    quickstart.wait_for_line("logo.png: ", SOON).await;
}

#[tokio::test]
async fn macro_free_ends_well_and_badly() {
    let mut macro_free = Proc::built("macro_free").start();
    succeeds(&mut macro_free).await;
    macro_free.wait_for_line("5040 = [2, 2, 2, 2, 3, 3, 5, 7]", SOON).await;
    macro_free.wait_for_line("zero has no prime factors", SOON).await;
}

#[tokio::test]
async fn inline_in_tests_needs_no_queue() {
    let mut inline = Proc::built("inline_in_tests").start();
    succeeds(&mut inline).await;
    inline.wait_for_line("50 CHF are 5200 cents", SOON).await;
}

async fn prints(name: &str, lines: &[&str]) {
    let mut example = Proc::built(name).start();
    succeeds(&mut example).await;
    for line in lines {
        example.wait_for_line(line, SOON).await;
    }
}

#[tokio::test]
async fn layer_auth_acts_as_the_submitter() {
    let refused = "a layer refused the submit: no user is signed in";
    prints("layer_auth", &[refused, "ann renamed b.txt"]).await;
}

#[tokio::test]
async fn layer_errors_captures_each_failure() {
    let user = "user Some(\"ann\"): order 7: the bank does not answer";
    let [first, last] = ["warning: charge, attempt 1", "error: charge, attempt 2"]
        .map(|begin| format!("{begin}, {user}"));
    prints("layer_errors", &[&first, &last]).await;
}

#[tokio::test]
async fn layer_tenancy_passes_the_tenant_on() {
    let bill = "the bill of order 8 is sent from acme";
    prints("layer_tenancy", &["the task has no tenant", bill]).await;
}

/// The guide shows what the example prints, so that it stays true.
#[tokio::test]
async fn traced_prints_the_tree_of_the_guide() {
    let mut traced = Proc::built("traced").start();
    succeeds(&mut traced).await;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/tracing.md");
    let guide = fs::read_to_string(root).unwrap();
    let (_, shown) = guide.split_once("```text\npost /orders").expect("the tree");
    let (shown, _) = shown.split_once("```").unwrap();
    assert_eq!(format!("{}\n", traced.lines().join("\n")), format!("post /orders{shown}"));
}

#[tokio::test]
async fn without_a_url_app_and_worker_print_what_to_set() {
    for name in ["app", "worker"] {
        let program = Proc::built(name).env("OPTIMUS_URL", "").env("REDIS_URL", "");
        let mut proc = program.start();
        assert!(!proc.wait(SOON).await.success(), "{name}");
        proc.wait_for_line("OPTIMUS_URL=redis://", SOON).await;
    }
}

fn start(name: &str, redis: &RedisServer) -> Proc {
    Proc::built(name).env("OPTIMUS_URL", redis.url()).start()
}

async fn two_workers(redis: &RedisServer) -> [Proc; 2] {
    let workers = [start("worker", redis), start("worker", redis)];
    for worker in &workers {
        worker.wait_for_line("optimus worker", SOON).await;
    }
    workers
}

/// Checks that each order came back as exactly one parcel.
async fn has_all_parcels(app: &Proc) {
    app.wait_for_line(" parcels", SOON).await;
    let parcels = app.lines().iter().filter(|line| line.contains(" g from ")).count();
    assert_eq!(parcels, 40, "{:#?}", app.lines());
}

#[tokio::test]
async fn app_gets_its_parcels_from_both_workers() {
    let redis = RedisServer::start();
    let mut workers = two_workers(&redis).await;
    let mut app = start("app", &redis);
    succeeds(&mut app).await;
    has_all_parcels(&app).await;
    app.wait_for_line("order 40 once more: duplicate = true", SOON).await;
    for worker in &mut workers {
        app.wait_for_line(&format!("station-{} packed ", worker.pid()), SOON).await;
        worker.sigterm();
        succeeds(worker).await;
        worker.wait_for_line("is closed", SOON).await;
    }
}

#[tokio::test]
async fn orders_of_a_killed_worker_are_packed_by_the_other() {
    let redis = RedisServer::start();
    let [mut victim, heir] = two_workers(&redis).await;
    let mut app = start("app", &redis);
    let in_hand = || {
        let begun = orders(&victim, "attempt=1}: shop: packing");
        &begun - &(&orders(&victim, "shop: packed") | &orders(&victim, "tape ran out"))
    };
    eventually("the worker is packing", SOON, async || !in_hand().is_empty()).await;
    let orphans = in_hand();
    victim.kill9();
    // The lease lasts 15 s, and the other worker notices its end within 2 s.
    let status = app.wait(Duration::from_secs(17)).await;
    assert!(status.success(), "{:#?}", app.lines());
    let inherited = || orphans.is_subset(&orders(&heir, "shop: packed"));
    eventually("the other worker packs the orders of the killed one", SOON, async || inherited())
        .await;
    has_all_parcels(&app).await;
}
