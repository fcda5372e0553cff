//! Work whose time has come while no worker runs needs slots: a scaler begins from zero.

use std::time::Duration;

use crate::common::Bench;
use optimus_core::{
    BoxError, Context, Due, Gate, Limit, QueueName, QueueSample, Rate, Retry, Sampler, Schedule,
    Task, TaskOptions, TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(100);

macro_rules! task {
    ($type:ident $name:literal $options:expr, $answer:expr) => {
        #[derive(Serialize, Deserialize)]
        struct $type {}

        impl Task for $type {
            const NAME: &'static str = $name;
            type Output = ();

            fn options() -> TaskOptions {
                $options
            }

            async fn run(self, _: Context) -> Result<(), BoxError> {
                $answer
            }
        }
    };
}

task!(Plain "plain" TaskOptions::new(), Ok(()));
task!(Again "again" TaskOptions::new(), Err(Retry::after(Duration::from_secs(1)).into()));
task!(Gathered "gathered" TaskOptions::new().gather(SOON, 9), Ok(()));
task!(Limited "limited" TaskOptions::new().rate(Rate::per_minute(60)), Ok(()));
task!(Shuts "shuts" TaskOptions::new(), Err(Retry::after(HOUR).pause_queue().into()));

/// Reads a queue as a program that has just started, and knows nothing of what arrived before.
async fn sample(bench: &Bench, name: &str) -> QueueSample {
    let queues = vec![QueueName::new(name).unwrap()];
    let mut sampler = Sampler::new(bench.client.inspector(), queues, 9, MINUTE);
    sampler.sample().await.unwrap().queues.remove(0)
}

/// Expects that a queue without workers needs a slot, soon after it needed none.
async fn needs_a_slot(bench: &Bench, name: &str) -> QueueSample {
    let needs = async || sample(bench, name).await.want_slots == 1;
    eventually(&format!("{name} needs a slot"), PATIENCE, needs).await;
    sample(bench, name).await
}

#[tokio::test]
async fn a_delayed_task_that_is_due_needs_a_slot_and_waits_since_then() {
    let bench = Bench::on_redis().await;
    for due in [SOON, HOUR] {
        let call = Plain {}.call().queue("later").due(Due::In(due));
        bench.client.submit(call).await.unwrap();
    }
    let seen = needs_a_slot(&bench, "later").await.seen;
    assert_eq!((seen.due, seen.counts.delayed, seen.counts.ready), (1, 2, 0), "none was moved");
    assert!(seen.oldest.is_some_and(|age| age < MINUTE), "{:?}", seen.oldest);
    let since = seen.oldest_since;
    assert_eq!(sample(&bench, "later").await.seen.oldest_since, since);
    bench.client.pause("later").await.unwrap();
    assert_eq!(sample(&bench, "later").await.want_slots, 0, "it is paused");
    bench.client.resume("later").await.unwrap();
    let worker = bench.start(bench.worker().queues(["later"]).task_type::<Plain>());
    let none_is_due = async || sample(&bench, "later").await.seen.due == 0;
    eventually("a worker has taken it", PATIENCE, none_is_due).await;
    worker.stop().await;
    let seen = sample(&bench, "later").await;
    assert_eq!((seen.want_slots, seen.seen.oldest, seen.seen.counts.delayed), (0, None, 1));
}

#[tokio::test]
async fn a_retry_that_is_due_needs_a_slot() {
    let bench = Bench::on_redis().await;
    let id = bench.client.submit(Again {}.call().queue("again")).await.unwrap().id().clone();
    let worker = bench.start(bench.worker().queues(["again"]).task_type::<Again>());
    eventually("it has failed", PATIENCE, async || {
        bench.client.inspector().get(&id).await.unwrap().unwrap().state == TaskState::Retry
    })
    .await;
    worker.stop().await;
    let seen = needs_a_slot(&bench, "again").await.seen;
    assert_eq!((seen.due, seen.counts.retry), (1, 1));
    assert!(seen.oldest.is_some());
}

#[tokio::test]
async fn a_run_of_gathered_tasks_that_is_due_needs_a_slot() {
    let bench = Bench::on_redis().await;
    for _ in 0..3 {
        bench.client.submit(Gathered {}.call().queue("gathered")).await.unwrap();
    }
    let seen = needs_a_slot(&bench, "gathered").await.seen;
    assert_eq!((seen.due, seen.counts.blocked), (1, 3), "a run is one for all of them");
}

#[tokio::test]
async fn tasks_whose_limit_has_opened_need_a_slot() {
    let bench = Bench::on_redis().await;
    for _ in 0..3 {
        bench.client.submit(Limited {}.call().queue("limited")).await.unwrap();
    }
    let worker = bench.start(bench.worker().queues(["limited"]).task_type::<Limited>());
    eventually("tasks wait for their limit", PATIENCE, async || {
        sample(&bench, "limited").await.seen.counts.blocked > 0
    })
    .await;
    worker.stop().await;
    assert!(needs_a_slot(&bench, "limited").await.seen.due > 0);
}

#[tokio::test]
async fn a_schedule_that_is_due_needs_a_slot() {
    let bench = Bench::on_redis().await;
    let call = Plain {}.call().queue("nightly");
    let often = Schedule::every("often", Duration::from_secs(1)).call(call);
    bench.client.schedules().put(often).await.unwrap();
    let seen = needs_a_slot(&bench, "nightly").await.seen;
    assert!(seen.schedule_lag.is_some());
    assert_eq!((seen.due, seen.counts.delayed), (0, 0), "nobody has ticked it");
}

#[tokio::test]
async fn a_queue_that_a_task_has_paused_needs_no_slot_until_it_is_resumed() {
    let bench = Bench::on_redis().await;
    for _ in 0..3 {
        bench.client.submit(Shuts {}.call().queue("shuts")).await.unwrap();
    }
    let worker = bench.worker().queues(["shuts"]).concurrency(1).task_type::<Shuts>();
    let worker = bench.start(worker);
    let is_paused = async || sample(&bench, "shuts").await.seen.counts.paused;
    eventually("a task has paused it", PATIENCE, is_paused).await;
    worker.stop().await;
    let seen = sample(&bench, "shuts").await;
    assert_eq!((seen.want_slots, seen.seen.counts.ready, seen.seen.counts.retry), (0, 2, 1));
    bench.client.resume("shuts").await.unwrap();
    let seen = sample(&bench, "shuts").await;
    assert_eq!((seen.want_slots, seen.seen.counts.paused), (1, false));
}

#[tokio::test]
async fn a_queue_needs_no_more_slots_than_its_own_limit_lets_start() {
    let bench = Bench::on_redis().await;
    // Nothing is known of their runs, so they count as 1 s each, to end within a minute.
    let calls = || (0..500).map(|_| Plain {}.call().queue("held"));
    bench.client.submit_all(calls()).await.unwrap();
    let wants = async || sample(&bench, "held").await.want_slots;
    assert_eq!(wants().await, 9);
    let gate = bench.client.gate("held", Gate::Queue);
    gate.set(Limit::new().max_working(3)).await.unwrap();
    assert_eq!(wants().await, 3);
    gate.set(Limit::new().rate(Rate::per_second(2))).await.unwrap();
    assert_eq!(wants().await, 2, "so many start within a run");
    gate.set(Limit::new().rate(Rate::per_second(2)).burst(5)).await.unwrap();
    assert_eq!(wants().await, 6, "5 may start now");
    gate.set(Limit::new().rate(Rate::per_hour(1))).await.unwrap();
    assert_eq!(wants().await, 1, "the next one starts in an hour");
    gate.remove().await.unwrap();
    assert_eq!(wants().await, 9);
}
