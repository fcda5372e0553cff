//! What handlers say with `ctx.log`, and what operators read of it.

use std::time::Duration;

use crate::common::{Bench, Gate, view};
use optimus_core::{
    Backoff, BoxError, Context, Fatal, Snooze, Task, TaskHandle, TaskLog, TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(30);
const MILLION: u64 = 1_000_000;
const SOON: Backoff = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };

/// Says something, and ends in the way that its argument states.
#[derive(Serialize, Deserialize)]
struct Talk {
    how: String,
}

impl Task for Talk {
    const NAME: &'static str = "talk";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.log(format!("begins attempt {}", ctx.attempt()));
        match self.how.as_str() {
            "fails" => Err("no route".into()),
            "dies" => {
                ctx.log("gives up");
                Err(Fatal::new("no route").into())
            }
            "snoozes" => Err(Snooze::new(PATIENCE).because("the store\nis busy").into()),
            "waits" => {
                let gate: Gate = ctx.data().ok_or("no gate")?;
                gate.began.hit();
                gate.open.wait_for(1).await;
                Ok(())
            }
            "babbles" => {
                (1..MILLION).for_each(|number| ctx.log(format!("said {number}")));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

async fn submit(bench: &Bench, how: &str) -> TaskHandle<()> {
    let call = Talk { how: how.into() }.call().max_retry(1).backoff(SOON);
    bench.client.submit(call).await.unwrap()
}

async fn log(bench: &Bench, handle: &TaskHandle<()>) -> TaskLog {
    view(bench, handle.id()).await.log
}

fn texts(log: &TaskLog) -> Vec<(u32, &str)> {
    log.lines.iter().map(|line| (line.attempt, &*line.text)).collect()
}

#[tokio::test]
async fn lines_are_read_while_a_task_runs_and_stay_when_it_has_ended() {
    let bench = Bench::on_redis().await;
    let gate = Gate::new();
    let worker = bench.worker().concurrency(4).data(gate.clone()).task_type::<Talk>();
    let worker = bench.start(worker);
    let [runs, fails, dies] = ["waits", "fails", "dies"].map(|how| submit(&bench, how));
    let (runs, fails, dies) = (runs.await, fails.await, dies.await);
    eventually("a line of the running task is read", PATIENCE, async || {
        texts(&log(&bench, &runs).await) == [(1, "begins attempt 1")]
    })
    .await;
    let before = bench.client.inspector().now().await.unwrap();
    gate.open.hit();
    runs.result_within(PATIENCE).await.unwrap();
    for handle in [&fails, &dies] {
        handle.result_within(PATIENCE).await.unwrap_err();
    }
    worker.stop().await;
    let said = log(&bench, &runs).await;
    assert_eq!((texts(&said), said.dropped), (vec![(1, "begins attempt 1")], 0));
    let age = before - said.lines[0].at;
    assert!((0..30_000).contains(&age.num_milliseconds()), "{age}: by the clock of Redis");
    let attempts = [(1, "begins attempt 1"), (2, "begins attempt 2")];
    assert_eq!(texts(&log(&bench, &fails).await), attempts);
    assert_eq!(texts(&log(&bench, &dies).await), [(1, "begins attempt 1"), (1, "gives up")]);
    bench.client.delete(dies.id()).await.unwrap();
    let mut raw = bench.raw().await;
    let left = raw.run(&format!("HLEN {}", bench.key("default", "logs"))).await;
    assert_eq!(left, [b"2"], "a deleted task has no log");
}

#[tokio::test]
async fn the_reason_of_each_snooze_is_a_line_of_the_log() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Talk>());
    let handle = submit(&bench, "snoozes").await;
    let snoozed = [(1, "begins attempt 1"), (1, "snooze for 30s: the store is busy")];
    let has_lines =
        async |times| texts(&log(&bench, &handle).await) == snoozed.repeat(times).as_slice();
    eventually("its reason is read", PATIENCE, async || has_lines(1).await).await;
    assert_eq!(handle.status().await.unwrap(), TaskState::Delayed);
    bench.client.run_now(handle.id()).await.unwrap();
    eventually("both reasons are read", PATIENCE, async || has_lines(2).await).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_handler_that_says_a_million_lines_costs_few_calls_and_little_memory() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Talk>());
    let handle = submit(&bench, "babbles").await;
    handle.result_within(PATIENCE * 2).await.unwrap();
    worker.stop().await;
    let said = log(&bench, &handle).await;
    let (_, last) = texts(&said)[99];
    assert_eq!((last, said.lines.len()), ("said 999999", 100));
    assert_eq!(said.dropped, MILLION - 100);
    let mut raw = bench.raw().await;
    let id = handle.id().stored();
    let bytes = raw.run(&format!("HSTRLEN {} {id}", bench.key("default", "logs"))).await;
    let bytes: u32 = String::from_utf8_lossy(&bytes[0]).parse().unwrap();
    assert!((1_000..8_300).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn a_task_that_says_nothing_has_no_log_and_costs_no_call() {
    #[derive(Serialize, Deserialize)]
    struct Silent {}
    impl Task for Silent {
        const NAME: &'static str = "silent";
        type Output = ();

        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Silent>());
    let handle = bench.client.submit(Silent {}.call()).await.unwrap();
    handle.result_within(PATIENCE).await.unwrap();
    worker.stop().await;
    assert_eq!(log(&bench, &handle).await, TaskLog::default());
    let mut raw = bench.raw().await;
    assert_eq!(raw.run(&format!("EXISTS {}", bench.key("default", "logs"))).await, [b"0"]);
}

/// A process that the next test kills.
#[tokio::test]
#[ignore = "the next test starts it as a process"]
async fn a_worker_process_for_the_next_test() {
    let bench = Bench::of_parent().await;
    let worker = bench.worker().data(Gate::new()).task_type::<Talk>();
    worker.build().unwrap().run().await.unwrap();
}

#[tokio::test]
async fn lines_that_were_sent_survive_the_kill_of_their_worker() {
    let bench = Bench::on_redis().await;
    let mut doomed = bench.child("logs::a_worker_process_for_the_next_test").start();
    let handle = submit(&bench, "waits").await;
    eventually("its line is read", PATIENCE, async || !log(&bench, &handle).await.lines.is_empty())
        .await;
    doomed.kill9();
    assert_eq!(texts(&log(&bench, &handle).await), [(1, "begins attempt 1")]);
}
