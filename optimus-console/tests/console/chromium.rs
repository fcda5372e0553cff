//! The pages of a real console in Chromium: lanes, limits, schedules, groups, shards, sources and
//! dispensers as workers and operators make them, and how soon a page of 1,000 queues is painted.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use optimus::{
    Client, Found, OperationAct, OperationFilter, Page, Round, Shard, TaskState, Worker, group,
};
use optimus_console::{Console, ConsoleListener};
use optimus_testkit::{RedisServer, eventually};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    client::Browser,
    stage::{SOON, Stage, busy, call},
};

const THINGS: [&str; 7] =
    ["lanes", "limits", "schedules", "groups", "shards", "sources", "dispensers"];
const QUEUES: usize = 1_000;
/// The console looks for new things in each twelfth of its reads.
const FOUND_WITHIN: Duration = Duration::from_secs(120);

#[optimus::sharded(shards = 3, idle = "1s")]
async fn walk(_shard: Shard) -> Result<Round, std::io::Error> {
    Ok(Round::Idle)
}

#[optimus::source(every = "1s")]
async fn unpaid(_page: Page<i64>) -> Result<Vec<Found<i64>>, std::io::Error> {
    Ok(Vec::new())
}

/// Runs the browser tests with this name over a console.
async fn in_chromium(name: &'static str, browser: &Browser) -> Option<String> {
    node(vec!["browser", "--test-name-pattern", name], browser).await
}

/// Runs tests of the pages over a console. Returns their output, or none if this machine lacks
/// Node.js, Chromium or the packages of `cargo xtask console`.
async fn node(tests: Vec<&'static str>, browser: &Browser) -> Option<String> {
    // All runs bundle the tests into one folder.
    static ONE: Mutex<()> = Mutex::new(());
    let url = format!("http://{}/", browser.address);
    let web = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("web");
    let has = |program: &str| {
        let mut asked = Command::new(program);
        asked
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|ended| ended.status.success())
    };
    if !has("node") || !has("chromium") || !web.join("node_modules").is_dir() {
        println!("skipped: no Node.js, Chromium or packages; `cargo xtask console` installs them");
        return None;
    }
    let run = move || {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut node = Command::new("node");
        node.arg("tests/run.mjs").args(tests).current_dir(web);
        node.env("CONSOLE_URL", url).env("CONSOLE_SHORT", "1").stdin(Stdio::null()).output()
    };
    let ended = spawn_blocking(run).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{text}\n{}", String::from_utf8_lossy(&ended.stderr));
    Some(text)
}

/// Makes one or more things of each kind.
async fn furnish(stage: &Stage) {
    stage.fill().await;
    stage.furnish().await;
    for queue in [".", ".."] {
        stage.client.submit(call("x").queue(queue)).await.unwrap();
    }
    let members = ["now", "later", "fatal"].map(call);
    stage.client.submit_group(group(members)).await.unwrap();
    let review = stage.client.dispenser("review");
    review.add((0..30).map(|number| format!("photo-{number}"))).await.unwrap();
    review.assign("carol", 5).await.unwrap();
    stage.client.dispenser("refunds").add(["r-1"]).await.unwrap();
}

/// Waits until the menu has the page of each kind of thing.
async fn all_are_offered(browser: &Browser) {
    eventually("all pages are offered", FOUND_WITHIN, async || {
        let features = browser.look("overview").await["features"].clone();
        THINGS.iter().all(|kind| features[kind] == true)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_thing_of_a_real_namespace_is_listed_and_its_page_is_whole_in_chromium() {
    let stage = Arc::new(Stage::new().await);
    furnish(&stage).await;
    let worker = Worker::builder(stage.url()).namespace(&stage.namespace).queues(["apart"]);
    let worker = worker.concurrency(4).build().unwrap();
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>()));
    let served = stage.open();
    let browser = &served.browser;
    let rows = async |kind: &str| browser.look(kind).await["rows"].as_array().unwrap().clone();
    for kind in THINGS {
        eventually(kind, SOON, async || !rows(kind).await.is_empty()).await;
        let bad = |row: &Value| row["state"].as_str().unwrap().starts_with("can't");
        assert!(!rows(kind).await.iter().any(bad), "{kind}");
    }
    let dispensers = rows("dispensers").await;
    let named = |row: &Value| row["name"].as_str().unwrap().to_owned();
    assert_eq!(dispensers.iter().map(named).collect::<Vec<_>>(), ["refunds", "review"]);
    assert!(dispensers[1]["facts"].to_string().contains(r#""name":"open","value":"25""#));
    all_are_offered(browser).await;
    if let Some(text) = in_chromium("every page is whole", browser).await {
        assert!(text.contains("every page is whole at 1440 px"), "{text}");
    }
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_1000_queues_is_painted_soon_in_chromium() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    for queue in 0..QUEUES {
        client.submit(call("x").queue(format!("queue-{queue}"))).await.unwrap();
    }
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    if let Some(text) = in_chromium("a page is painted soon", &browser).await {
        assert!(text.contains("#/queues: first paint"), "{text}");
        text.lines().filter(|line| line.contains("paint")).for_each(|line| println!("{line}"));
    }
    serving.abort();
}

/// `SCREENSHOTS=/tmp/pages SCREENSHOTS_ALL=1 cargo test -p optimus-tasks-console --test console
/// pictures -- --ignored` draws the pages of a real console, for people who look at them.
#[ignore = "it draws pictures for people"]
#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_a_real_console_with_1000_queues() {
    assert!(std::env::var_os("SCREENSHOTS").is_some(), "SCREENSHOTS names the folder");
    let stage = Arc::new(Stage::new().await);
    for queue in 0..QUEUES {
        stage.submit(call("x").queue(format!("tenant-{queue}"))).await;
    }
    furnish(&stage).await;
    let fingers = (0..40).map(|number| format!("fail: connect to smtp-{number}: timed out"));
    for how in fingers.chain((0..5).map(|_| "retry".to_owned())) {
        stage.submit(call(&how)).await;
    }
    let (_, running) = busy(&stage).await;
    let worker = Worker::builder(stage.url()).namespace(&stage.namespace).queues(["apart"]);
    let other = tokio::spawn(worker.build().unwrap().run_until(std::future::pending::<()>()));
    let filter = OperationFilter::of(TaskState::Dead).queue("mail").unwrap();
    let operations = stage.client.operations();
    operations.count(OperationAct::Delete, filter, "bob").await.unwrap();
    let served = stage.open();
    let pause = json!({ "name": "digest", "act": "pause", "reason": "the quarter ends, OPS-412" });
    served.browser.act("things/schedules/act", &pause).await.is(200);
    all_are_offered(&served.browser).await;
    let text = node(vec!["screenshots"], &served.browser).await.expect("it has a browser");
    println!("{text}");
    running.abort();
    other.abort();
}
