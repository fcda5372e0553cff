//! Schedules that move to another queue, and schedules that a worker can't read.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::common::Bench;
use optimus_core::{
    BoxError, Context, Overlap, QueueName, Schedule, ScheduleTick, Task, TaskId, TaskOptions,
    TickOutcome, broker::Broker, store_schedule,
};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// Counts that it has run.
#[derive(Serialize, Deserialize)]
struct Note {}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        if let Some(seen) = ctx.data::<Arc<Signal>>() {
            seen.hit();
        }
        Ok(())
    }
}

/// Defines a task with a schedule of each second in its code, of one release.
macro_rules! beats {
    ($($type:ident: $release:literal, $queue:literal;)*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $type {}

        impl Task for $type {
            const NAME: &'static str = "report";
            type Output = ();

            fn options() -> TaskOptions {
                TaskOptions::new().queue($queue)
            }

            fn schedule() -> Option<Schedule> {
                let beat = Schedule::cron("report", "* * * * * *").overlap(Overlap::All);
                Some(beat.release($release).call(Self {}.call()))
            }

            async fn run(self, _: Context) -> Result<(), BoxError> {
                Ok(())
            }
        }
    )*};
}

beats! {
    BeatOld: "1.0.0", "olds";
    BeatNew: "2.0.0", "news";
    BeatSame: "1.0.0", "news";
}

async fn history(bench: &Bench, name: &str) -> Vec<ScheduleTick> {
    bench.client.schedules().history(name).await.unwrap()
}

/// Returns the ids of the tasks, of a schedule of each second that has missed nothing and has run
/// each instant once.
fn each_second_once(mut ticks: Vec<ScheduleTick>) -> Vec<TaskId> {
    ticks.reverse();
    for pair in ticks.windows(2) {
        let apart = pair[1].nominal - pair[0].nominal;
        let missed = i64::from(pair[1].missed);
        assert_eq!(apart.num_milliseconds(), 1_000 * (1 + missed), "{pair:?}");
    }
    let ids = ticks.iter().map(|tick| match &tick.outcome {
        TickOutcome::Submitted(id) => id.clone(),
        other => panic!("{other:?}"),
    });
    let ids: Vec<TaskId> = ids.collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id is there twice");
    ids
}

/// Runs an old and a new program side by side, after the function has moved to another queue. In
/// the end, each second from the first to the last must have one task.
async fn deploy_that_moves<New: Task>(bench: &Bench) {
    let schedules = bench.client.schedules();
    let old = bench.start(bench.worker().queues(["olds"]).task_type::<BeatOld>());
    eventually("the old program ticks", SOON, async || history(bench, "report").await.len() > 1)
        .await;
    let new = bench.start(bench.worker().queues(["news"]).task_type::<New>());
    let is_in_new = async || {
        let found = schedules.get("report").await.unwrap();
        found.is_some_and(|found| found.queue.as_str() == "news")
    };
    eventually("the schedule has moved", SOON, is_in_new).await;
    let moved_at = history(bench, "report").await.len();
    // A look of the old program finds that it is gone from its queue.
    eventually("the new program ticks", SOON, async || {
        history(bench, "report").await.len() > moved_at + 4
    })
    .await;
    assert!(is_in_new().await);
    for worker in [old, new] {
        worker.stop().await;
    }
    schedules.pause("report", "the test").await.unwrap();
    let ids = each_second_once(history(bench, "report").await);
    let queues: BTreeSet<&str> = ids.iter().map(|id| id.queue().as_str()).collect();
    assert_eq!(queues, BTreeSet::from(["news", "olds"]));
    for queue in ["olds", "news"] {
        let queue = QueueName::new(queue).unwrap();
        let in_queue = ids.iter().filter(|id| *id.queue() == queue).count();
        let counts = bench.client.inspector().counts(&queue).await.unwrap();
        let tasks = counts.recent_successes + counts.delayed + counts.ready + counts.working;
        assert_eq!(tasks, in_queue as u64, "{queue}: a task that is not in the history");
    }
}

on_both! {
    async fn a_deploy_that_moves_a_function_to_another_queue_runs_each_instant_once(bench: Bench) {
        deploy_that_moves::<BeatNew>(&bench).await;
    }

    async fn the_same_holds_if_both_programs_have_the_same_version(bench: Bench) {
        deploy_that_moves::<BeatSame>(&bench).await;
    }

    async fn a_paused_schedule_stays_paused_when_a_deploy_moves_it(bench: Bench) {
        let schedules = bench.client.schedules();
        let old = bench.start(bench.worker().queues(["olds"]).task_type::<BeatOld>());
        eventually("it ticks", SOON, async || !history(&bench, "report").await.is_empty()).await;
        assert!(schedules.pause("report", "ann").await.unwrap());
        old.stop().await;
        let before = history(&bench, "report").await;
        let new = bench.start(bench.worker().queues(["news"]).task_type::<BeatNew>());
        let found = async || schedules.get("report").await.unwrap().unwrap();
        eventually("it has moved", SOON, async || found().await.queue.as_str() == "news").await;
        new.stop().await;
        let found = found().await;
        assert_eq!(found.paused.as_ref().map(|(_, by)| by.as_str()), Some("ann"));
        assert_eq!((found.next, history(&bench, "report").await), (None, before));
        let nobody = schedules.pause("report", " ").await.unwrap_err();
        assert!(nobody.is_invalid(), "{nobody}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_that_a_worker_cannot_read_do_not_stop_the_others() {
    let bench = Bench::on_redis().await;
    let (mut raw, broker): (_, &Broker) = (bench.raw().await, bench.client.broker());
    let past = broker.now_ms().await.unwrap() - 100_000;
    for n in 0..40 {
        let name = format!("newer{n}");
        let schedule = Schedule::every(&*name, SECOND).call(Note {}.call()).check().unwrap();
        store_schedule(&broker.at(past), &schedule).await.unwrap();
        let key = bench.key("default", &format!("schedule:{name}"));
        let stored = br#"{"cron":"0 0 * * *","tz":"Mars/Olympus"}"#;
        raw.run_words(&[b"HSET", key.as_bytes(), b"timing", stored]).await;
    }
    let seen = Arc::new(Signal::default());
    let good = Schedule::every("good", SECOND).overlap(Overlap::All).call(Note {}.call());
    bench.client.schedules().put(good).await.unwrap();
    let worker = bench.start(bench.worker().task_type::<Note>().data(seen.clone()));
    seen.wait_for(3).await;
    worker.stop().await;
    assert!(each_second_once(history(&bench, "good").await).len() >= 3);
}
