//! The page `docs/guides/getting-started.md` shows the files of this package, and its programs do
//! what that page describes.

use std::time::Duration;

use optimus_testkit::{Proc, RedisServer};

const PAGE: &str = include_str!("../../../docs/guides/getting-started.md");
const FILES: [&str; 4] = [
    include_str!("../src/lib.rs"),
    include_str!("../src/bin/first.rs"),
    include_str!("../src/main.rs"),
    include_str!("../src/bin/worker.rs"),
];
const GREETING: &str = "Welcome Ann, you are our user 7";
/// The time limit for a step that takes a second or two on an idle machine.
const SOON: Duration = Duration::from_secs(20);

async fn ends_well(proc: &mut Proc) {
    let status = proc.wait(SOON).await;
    assert!(status.success(), "{status}:\n{}", proc.lines().join("\n"));
}

#[test]
fn the_page_shows_each_file_of_this_package() {
    for file in FILES {
        assert!(PAGE.contains(&format!("\n{file}```\n")), "not on the page:\n{file}");
    }
}

#[tokio::test]
async fn the_first_program_needs_no_server() {
    let mut first = Proc::program(env!("CARGO_BIN_EXE_first")).start();
    ends_well(&mut first).await;
    let printed = [
        " on memory://hello: 64 slots, queues: mail",
        "  welcome (queue mail)",
        "  no tracing subscriber is installed, so nothing is logged; to see the log, call \
         `tracing_subscriber::fmt().init()` before the worker starts",
        GREETING,
    ];
    for part in printed {
        assert!(PAGE.contains(part), "{part} is not on the page");
        first.wait_for_line(part, SOON).await;
    }
}

#[tokio::test]
async fn the_application_waits_until_a_worker_is_there() {
    let redis = RedisServer::start();
    let start = |path| Proc::program(path).env("OPTIMUS_URL", redis.url()).start();
    let mut application = start(env!("CARGO_BIN_EXE_hello"));
    application.wait_for_line("submitted mail/", SOON).await;
    let mut worker = start(env!("CARGO_BIN_EXE_worker"));
    application.wait_for_line(GREETING, SOON).await;
    ends_well(&mut application).await;
    worker.sigterm();
    ends_well(&mut worker).await;
    let lines = worker.lines();
    assert!(lines.iter().any(|line| line.contains("INFO optimus_worker")), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains('\u{1b}')),
        "stdout is not a terminal, so the log has no colours: {lines:#?}"
    );
}

#[tokio::test]
async fn the_worker_logs_what_rust_log_asks_for() {
    let redis = RedisServer::start();
    let worker = Proc::program(env!("CARGO_BIN_EXE_worker")).env("OPTIMUS_URL", redis.url());
    let mut worker = worker.env("RUST_LOG", "optimus_worker::worker_start=info").start();
    worker.wait_for_line("the worker has started", SOON).await;
    worker.sigterm();
    ends_well(&mut worker).await;
    let lines = worker.lines();
    assert!(!lines.iter().any(|line| line.contains("the worker has ended")), "{lines:#?}");
}
