//! The processes that run workers: what operators see of them, and what they ask of them.

use std::time::Duration;

use crate::common::{
    Bench, Gate, Wait, all_have_ended, blocking_task::KeepThread, one_thread::OneThreadWorker,
};
use optimus_core::{
    BoxError, Context, Obstacle, ProcessAnswer, ProcessDetails, Task, TaskState, WorkerId,
};
use optimus_testkit::{Hold, eventually};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(30);

async fn all(bench: &Bench) -> Vec<ProcessDetails> {
    bench.client.inspector().processes(None, 100).await.unwrap().rows
}

/// Waits until the only process has said something.
async fn only(
    bench: &Bench,
    what: &str,
    is_so: impl Fn(&ProcessDetails) -> bool,
) -> ProcessDetails {
    let mut found = None;
    eventually(what, PATIENCE, async || {
        found = all(bench).await.into_iter().next().filter(&is_so);
        found.is_some()
    })
    .await;
    found.expect("the process that was found")
}

#[tokio::test]
async fn an_operator_sees_what_a_process_runs_and_quiets_resumes_and_stops_it() {
    let bench = Bench::on_redis().await;
    let gate = Gate::new();
    let worker = bench.worker().concurrency(2).data(gate.clone()).task_type::<Wait>();
    let worker = bench.start(worker);
    let first = bench.client.submit(Wait {}.call()).await.unwrap();
    let seen = only(&bench, "it runs a task", |process| process.doing.running.len() == 1).await;
    let running = &seen.doing.running[0];
    assert_eq!((running.task_id().as_ref(), running.attempt), (Some(first.id()), 1));
    assert_eq!(running.task, Wait::NAME);
    assert_eq!((seen.about.pid, seen.about.concurrency), (std::process::id(), 2));
    assert!(!seen.about.host.is_empty() && !seen.about.version.is_empty(), "{seen:?}");
    assert_eq!((seen.doing.slots, seen.about.queues.as_slice()), (2, &["default".to_owned()][..]));
    if cfg!(target_os = "linux") {
        assert!(seen.doing.rss_bytes.is_some());
    }

    let process = bench.client.process(&seen.id);
    assert_eq!(process.quiet().await.unwrap(), ProcessAnswer::Asked);
    only(&bench, "it is quiet", |process| process.doing.slots == 0).await;
    bench.client.submit(Wait {}.call()).await.unwrap();
    assert_eq!(process.slots(1).await.unwrap(), ProcessAnswer::Asked);
    only(&bench, "it has one slot", |process| process.doing.slots == 1).await;
    let counts = bench.client.inspector().counts("default").await.unwrap();
    assert_eq!((counts.working, counts.ready), (1, 1), "its slot is busy");
    assert_eq!(process.resume().await.unwrap(), ProcessAnswer::Asked);
    only(&bench, "it runs both", |process| process.doing.running.len() == 2).await;
    gate.open.hit();
    assert_eq!(process.stop().await.unwrap(), ProcessAnswer::Asked);
    eventually("it has left the list", PATIENCE, async || all(&bench).await.is_empty()).await;
    // `run_until` has returned an error, because the worker ended before the test did.
    drop(worker);
    assert_eq!(process.stop().await.unwrap(), ProcessAnswer::Absent);
}

/// Says that it is half done, and waits.
#[derive(Serialize, Deserialize)]
struct Fetch {}

impl Task for Fetch {
    const NAME: &'static str = "fetch";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.progress(0.1, "");
        ctx.progress(0.5, "copied 42 files");
        let gate: Gate = ctx.data().unwrap();
        gate.open.wait_for(1).await;
        Ok(())
    }
}

#[tokio::test]
async fn an_operator_sees_how_far_a_running_task_has_come() {
    let bench = Bench::on_memory().await;
    let gate = Gate::new();
    let worker = bench.start(bench.worker().data(gate.clone()).task_type::<Fetch>());
    let handle = bench.client.submit(Fetch {}.call()).await.unwrap();
    let has_progress =
        |seen: &ProcessDetails| seen.doing.running.iter().any(|task| task.progress.is_some());
    let seen = only(&bench, "its progress is seen", has_progress).await;
    let progress = seen.doing.running[0].progress.clone().unwrap();
    assert_eq!((progress.part, progress.text.as_str()), (0.5, "copied 42 files"));
    gate.open.hit();
    handle.result_within(PATIENCE).await.unwrap();
    only(&bench, "nothing is left of it", |seen| seen.doing.running.is_empty()).await;
    worker.stop().await;
}

/// Keeps a thread of its own until the test releases its [`Hold`].
#[derive(Serialize, Deserialize)]
struct KeepFn {}

impl Task for KeepFn {
    const NAME: &'static str = "keep_fn";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let hold: Hold = ctx.data().unwrap();
        ctx.run_blocking(move || hold.keep_thread()).await;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_that_handlers_block_all_threads_of_a_worker() {
    let (bench, hold) = (Bench::on_redis().await, Hold::new());
    let builder = bench.worker().concurrency(2).data(hold.clone()).task_type::<KeepThread>();
    let worker = OneThreadWorker::start(builder);
    let blocks = bench.client.submit(KeepThread {}.call()).await.unwrap();
    hold.arrivals().wait_for(1).await;
    let waits = bench.client.submit(KeepThread {}.call()).await.unwrap();
    let seen = only(&bench, "it is blocked", |seen| seen.doing.blocked_ms.is_some()).await;
    let inspector = bench.client.inspector();
    for why in [
        inspector.explain(waits.id()).await.unwrap(),
        inspector.explain(blocks.id()).await.unwrap(),
        inspector.explain_queue("default").await.unwrap(),
    ] {
        let names_it = |obstacle: &Obstacle| {
            matches!(obstacle, Obstacle::Blocked { workers, count: 1, .. }
                if *workers == [seen.id.clone()])
        };
        assert!(why.obstacles.iter().any(names_it), "{why}");
    }
    hold.release();
    all_have_ended(&bench).await;
    only(&bench, "it goes on", |seen| seen.doing.blocked_ms.is_none()).await;
    drop(worker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_which_handlers_go_on_after_their_timeouts() {
    let (bench, hold) = (Bench::on_redis().await, Hold::new());
    let builder = bench.worker().concurrency(3).data(hold.clone()).data(Gate::new());
    let builder = builder.task_type::<KeepThread>().task_type::<KeepFn>().task_type::<Wait>();
    let worker = OneThreadWorker::start(builder);
    let short = Duration::from_millis(300);
    // The two that keep no thread of the runtime are there before the other one keeps it.
    let waits = Wait {}.call().timeout(Duration::from_secs(5)).max_retry(0);
    let waits = bench.client.submit(waits).await.unwrap();
    let is_there =
        |seen: &ProcessDetails| seen.doing.running.iter().any(|task| task.task == "wait");
    only(&bench, "one waits", is_there).await;
    let thread = bench.client.submit(KeepFn {}.call().timeout(short)).await.unwrap();
    hold.arrivals().wait_for(1).await;
    let call = KeepThread {}.call().timeout(short).max_retry(0);
    let blocks = bench.client.submit(call).await.unwrap();
    hold.arrivals().wait_for(2).await;
    let late = |seen: &ProcessDetails| {
        let late = seen.doing.running.iter().filter(|task| task.late_ms.is_some());
        late.filter_map(optimus_core::RunningTask::task_id).collect::<Vec<_>>()
    };
    let seen = only(&bench, "both go on", |seen| late(seen).len() == 2).await;
    assert_eq!(late(&seen), [thread.id().clone(), blocks.id().clone()]);
    assert_eq!(blocks.status().await.unwrap(), TaskState::Dead, "its attempt has ended");
    assert_eq!(thread.status().await.unwrap(), TaskState::Working, "its thread keeps the task");
    let dead = async || waits.status().await.unwrap() == TaskState::Dead;
    eventually("the one that waits has timed out, too", PATIENCE, dead).await;
    let why = bench.client.inspector().get(waits.id()).await.unwrap().unwrap();
    let error = &why.errors.last().unwrap().message;
    assert!(error.contains("had no thread"), "{error}");
    hold.release();
    all_have_ended(&bench).await;
    only(&bench, "none goes on", |seen| seen.doing.running.is_empty()).await;
    drop(worker);
}

#[tokio::test]
async fn an_idle_process_obeys_at_once_although_it_attends_rarely() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().concurrency(2).task_type::<Wait>().data(Gate::new()));
    let seen = only(&bench, "it is there", |process| process.doing.slots == 2).await;
    let process = bench.client.process(&seen.id);
    for round in 0..3 {
        let asked = std::time::Instant::now();
        assert_eq!(process.quiet().await.unwrap(), ProcessAnswer::Asked);
        only(&bench, "it is quiet", |process| process.doing.slots == 0).await;
        assert_eq!(process.resume().await.unwrap(), ProcessAnswer::Asked);
        only(&bench, "it uses its slots again", |process| process.doing.slots == 2).await;
        assert!(asked.elapsed() < PATIENCE / 2, "by itself, it attends each 3 min; round {round}");
    }
    worker.stop().await;
    assert!(all(&bench).await.is_empty());
}

#[tokio::test]
async fn a_process_obeys_no_wish_twice_and_the_next_one_if_redis_has_lost_the_last() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().concurrency(4).task_type::<Wait>().data(Gate::new()));
    let seen = only(&bench, "it is there", |process| process.doing.slots == 4).await;
    let process = bench.client.process(&seen.id);
    for count in [1, 2] {
        assert_eq!(process.slots(count).await.unwrap(), ProcessAnswer::Asked);
        only(&bench, "it has obeyed", |process| process.doing.slots == count).await;
    }
    let key = |name: &str| format!("{{{}:@fleet:0}}:{name}:{}", bench.namespace(), seen.id);
    let (mut raw, known, wake) = (bench.raw().await, key("process"), key("wake"));
    let lost: [&[u8]; 6] = [b"HSET", known.as_bytes(), b"wishes", b"1", b"wish", b"slots 1"];
    raw.run_words(&lost).await;
    // One that obeys attends once more, to say so.
    for _ in 0..2 {
        let before = all(&bench).await.remove(0).seen;
        eventually("it attends", PATIENCE, async || {
            raw.run(&format!("RPUSH {wake} 1")).await;
            all(&bench).await.remove(0).seen > before
        })
        .await;
        let slots = all(&bench).await.remove(0).doing.slots;
        assert_eq!(slots, 2, "the first wish was obeyed before");
    }
    assert_eq!(process.slots(3).await.unwrap(), ProcessAnswer::Asked);
    only(&bench, "it has obeyed", |process| process.doing.slots == 3).await;
    // The next wish has the number of the one that is lost.
    raw.run_words(&lost).await;
    assert_eq!(process.slots(4).await.unwrap(), ProcessAnswer::Asked);
    only(&bench, "it has obeyed", |process| process.doing.slots == 4).await;
    worker.stop().await;
}

#[tokio::test]
async fn an_operator_asks_only_processes_that_are_there_and_for_what_is_possible() {
    let bench = Bench::on_memory().await;
    let nobody = bench.client.process(&WorkerId::from_stored("vm-1-00000000"));
    assert_eq!(nobody.quiet().await.unwrap(), ProcessAnswer::Absent);
    assert!(nobody.slots(0).await.unwrap_err().is_invalid());
    assert!(bench.client.inspector().processes(None, 0).await.unwrap_err().is_invalid());
    assert!(all(&bench).await.is_empty());
}
