//! Worker processes that must end on time although code of the program outside of handlers keeps a
//! thread of the runtime.

use std::{
    env,
    future::poll_fn,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::common::{
    Bench, Double,
    rounds::{Rounds, sharded},
    rows::{OPTIONS, PARTS, Rows},
};
use optimus_core::{
    BoxError, Context, Credentials, End, Layer, PageFacts, RunningScan, Sharded, Source,
    SourceParts, Task, Walk,
};
use optimus_testkit::{EachEvent, LogEvent, Proc};
use optimus_worker::Worker;
use tokio::runtime::Builder;
use tracing::{Level, subscriber::set_default};

const SOON: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
/// How long a supervisor waits, according to the documentation.
const WITHIN: Duration = Duration::from_secs(11);

/// Keeps its thread for longer than any test.
fn park() -> ! {
    println!("parking");
    loop {
        thread::park();
    }
}

/// Keeps the thread that polls it.
fn parked<T>() -> impl Future<Output = T> {
    poll_fn(|_| park())
}

fn parked_rounds() -> Sharded {
    sharded("parked", 1, Walk::Forever, |_| Ok(Box::pin(parked())))
}

fn parked_rows() -> Source {
    let scan = |_: Arc<PageFacts>| Ok(Box::pin(parked()) as RunningScan);
    Source::new(("parked", "parked"), OPTIONS, SourceParts { scan, ..PARTS })
}

struct ParksInSpan;

impl Layer for ParksInSpan {
    fn span(&self, _: &Context) -> Option<tracing::Span> {
        park()
    }
}

struct ParksAfterwards;

impl Layer for ParksAfterwards {
    async fn ended(&self, _: &Context, _: &End) {
        parked::<()>().await;
    }
}

/// Returns credentials that are valid for a moment, and keeps its thread when it is asked again.
async fn credentials(began: Instant) -> Result<Credentials, BoxError> {
    if began.elapsed() < Duration::from_secs(2) {
        return Ok(Credentials::new("default", "any").valid_for(Duration::from_secs(1)));
    }
    parked().await
}

#[test]
#[ignore = "other tests start this process with its settings"]
fn a_worker_process_for_the_other_tests() {
    let setting = |name: &str| env::var(format!("CHILD_{name}")).unwrap();
    let builder = Worker::builder(&setting("URL"))
        .namespace(setting("NAMESPACE"))
        .queues(["default"])
        .lease(Duration::from_secs(2))
        .shutdown_grace(GRACE)
        .only_named_tasks()
        .task_type::<Double>()
        .data(Rounds::default())
        .data(Rows::default());
    let began = Instant::now();
    let builder = match setting("KEPT_BY").as_str() {
        "round" => builder.sharded(parked_rounds),
        "scan" => builder.source(parked_rows),
        "span" => builder.layer(ParksInSpan),
        "ended" => builder.layer(ParksAfterwards),
        _ => builder.credentials(move || credentials(began)),
    };
    let print = |event: LogEvent| println!("{}", event.message());
    let _default = set_default(EachEvent::new(print).of("optimus_").at(Level::ERROR));
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(builder.run()).unwrap();
    println!("run has returned");
    // This waits for the thread.
    drop(runtime);
}

/// Ends a process one of whose four threads is kept.
async fn ends_with_75(kept_by: &str) {
    let bench = Bench::on_redis().await;
    let mut child = Proc::program(env::current_exe().unwrap())
        .arg("ending_blocked::a_worker_process_for_the_other_tests")
        .arg("--exact")
        .arg("--ignored")
        .arg("--nocapture")
        .env("CHILD_URL", bench.url())
        .env("CHILD_NAMESPACE", bench.namespace())
        .env("CHILD_KEPT_BY", kept_by)
        .start();
    child.wait_for_line("optimus worker", SOON).await;
    bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    child.wait_for_line("parking", SOON).await;
    child.sigterm();
    child.wait_for_line("run has returned", SOON).await;
    assert_eq!(child.wait(WITHIN).await.code(), Some(Worker::EXIT_BLOCKED));
    child.wait_for_line("so the process exits", SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_although_a_round_of_a_shard_keeps_a_thread() {
    ends_with_75("round").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_although_the_scan_of_a_source_keeps_a_thread() {
    ends_with_75("scan").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_although_the_span_of_a_layer_keeps_a_thread() {
    ends_with_75("span").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_although_a_layer_keeps_a_thread_after_an_attempt() {
    ends_with_75("ended").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_although_the_function_for_credentials_keeps_a_thread() {
    ends_with_75("credentials").await;
}
