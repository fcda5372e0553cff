//! Schedules with real workers: each instant has one task, whatever happens to the workers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use crate::common::{Bench, Running};
use optimus_core::{
    BoxError, Context, DateTime, Missed, Overlap, QueueName, Schedule, ScheduleTick, Task, TaskId,
    TaskState, Tick, TickOutcome, Utc, broker::Broker, store_schedule,
};
use optimus_testkit::{RedisServer, Signal, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// What the handlers of a test have seen.
#[derive(Clone, Default)]
struct Seen {
    ticks: Arc<Mutex<Vec<Option<Tick>>>>,
    count: Arc<Signal>,
}

/// Notes its instant.
#[derive(Serialize, Deserialize)]
struct Note {}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        if let Some(seen) = ctx.data::<Seen>() {
            seen.ticks.lock().unwrap().push(ctx.tick().cloned());
            seen.count.hit();
        }
        Ok(())
    }
}

/// Defines a task with a schedule of code, of one release.
macro_rules! reports {
    ($($type:ident: $release:literal, $queue:literal, $schedule:expr;)*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $type {}

        impl Task for $type {
            const NAME: &'static str = "report";
            type Output = ();

            fn options() -> optimus_core::TaskOptions {
                optimus_core::TaskOptions::new().queue($queue)
            }

            fn schedule() -> Option<Schedule> {
                Some($schedule.release($release).call(Self {}.call()))
            }

            async fn run(self, _: Context) -> Result<(), BoxError> {
                Ok(())
            }
        }
    )*};
}

reports! {
    ReportV1: "1.0.0", "default", Schedule::cron("report", "0 9 * * *");
    ReportV2: "2.0.0", "default", Schedule::cron("report", "0 10 * * *");
    ReportMoved: "3.0.0", "reports", Schedule::cron("report", "0 10 * * *");
    ReportOften: "1.0.0", "default", Schedule::every("report", SECOND);
}

fn queue() -> QueueName {
    QueueName::new(QueueName::DEFAULT).unwrap()
}

fn secondly(name: &str) -> Schedule {
    Schedule::every(name, SECOND).overlap(Overlap::All).call(Note {}.call())
}

fn start(bench: &Bench, seen: &Seen) -> Running {
    bench.start(bench.worker().task_type::<Note>().data(seen.clone()))
}

async fn history(bench: &Bench, name: &str) -> Vec<ScheduleTick> {
    bench.client.schedules().history(name).await.unwrap()
}

/// Stores a schedule as if this had been so long ago, so that it is overdue.
async fn put_ago(bench: &Bench, ago: Duration, schedule: Schedule) {
    let broker: &Broker = bench.client.broker();
    let past = broker.now_ms().await.unwrap() - u64::try_from(ago.as_millis()).unwrap();
    store_schedule(&broker.at(past), &schedule.check().unwrap()).await.unwrap();
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

on_both! {
    async fn of_racing_workers_one_submits_the_task_of_each_instant(bench: Bench) {
        let seen = Seen::default();
        let workers: Vec<Running> = (0..6).map(|_| start(&bench, &seen)).collect();
        bench.client.schedules().put(secondly("beat")).await.unwrap();
        seen.count.wait_for(4).await;
        for worker in workers {
            worker.stop().await;
        }
        let ticks = history(&bench, "beat").await;
        let nominal: BTreeSet<_> = ticks.iter().map(|tick| tick.nominal).collect();
        let handled = seen.ticks.lock().unwrap().clone();
        let handled: Vec<Tick> = handled.into_iter().map(Option::unwrap).collect();
        assert!(handled.iter().all(|tick| tick.schedule() == Some("beat")));
        assert!(handled.iter().all(|tick| nominal.contains(&tick.nominal())));
        assert_eq!(each_second_once(ticks).len(), nominal.len());
        let distinct: BTreeSet<_> = handled.iter().map(Tick::nominal).collect();
        assert_eq!(distinct.len(), handled.len(), "an instant ran twice");
    }

    async fn an_idle_worker_hears_of_a_schedule_at_once(bench: Bench) {
        let seen = Seen::default();
        // Its heartbeats are 20 s apart.
        let worker = bench.worker().lease(Duration::from_secs(60)).poll(Duration::from_secs(3600));
        let worker = bench.start(worker.task_type::<Note>().data(seen.clone()));
        let inspector = bench.client.inspector();
        eventually("the worker has started", SOON, async || {
            !inspector.workers(&queue()).await.unwrap().is_empty()
        })
        .await;
        // It claims first, and listens for work after that.
        let handle = bench.client.submit(Note {}.call()).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        let began = Instant::now();
        bench.client.schedules().put(secondly("beat")).await.unwrap();
        seen.count.wait_for(3).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        worker.stop().await;
    }

    async fn each_policy_for_missed_instants_holds_after_all_workers_were_away(bench: Bench) {
        let ago = Duration::from_secs(45);
        for (name, missed, every) in [
            ("once", Missed::RunOnce, 10),
            ("all", Missed::All, 10),
            ("skip", Missed::Skip, 10),
        ] {
            let every = Schedule::every(name, Duration::from_secs(every)).missed(missed);
            put_ago(&bench, ago, every.overlap(Overlap::All).call(Note {}.call())).await;
        }
        let rare = Schedule::every("rare", Duration::from_secs(3_000)).missed(Missed::Skip);
        put_ago(&bench, Duration::from_secs(3_100), rare.call(Note {}.call())).await;
        let worker = start(&bench, &Seen::default());
        eventually("all were noticed", SOON, async || {
            let mut noticed = 0;
            for (name, count) in [("once", 1), ("all", 4), ("skip", 1), ("rare", 1)] {
                noticed += usize::from(history(&bench, name).await.len() >= count);
            }
            noticed == 4
        })
        .await;
        worker.stop().await;
        let once = history(&bench, "once").await.pop().unwrap();
        assert_eq!((once.missed, matches!(once.outcome, TickOutcome::Submitted(_))), (3, true));
        let all = history(&bench, "all").await;
        assert!(all.iter().all(|tick| matches!(tick.outcome, TickOutcome::Submitted(_))));
        let skip = history(&bench, "skip").await.pop().unwrap();
        assert!(matches!(skip.outcome, TickOutcome::Submitted(_)), "the latest is seconds old");
        let rare = history(&bench, "rare").await.pop().unwrap();
        assert_eq!((rare.missed, rare.outcome), (0, TickOutcome::Missed));
    }

    async fn a_deploy_changes_a_schedule_and_fires_nothing_of_the_past(bench: Bench) {
        let schedules = bench.client.schedules();
        let expression = async || {
            let found = schedules.get("report").await.unwrap();
            found.map(|found| found.pace.to_string()).unwrap_or_default()
        };
        let first = bench.start(bench.worker().task_type::<ReportV1>());
        eventually("the first release is stored", SOON, async || {
            expression().await == "0 9 * * * (UTC)"
        })
        .await;
        let second = bench.start(bench.worker().task_type::<ReportV2>());
        let is_second = async || expression().await == "0 10 * * * (UTC)";
        eventually("the second release is stored", SOON, is_second).await;
        first.stop().await;
        // The first release starts again during the deploy.
        let first = bench.worker().task_type::<ReportV1>().task_type::<Note>();
        let first = bench.start(first.queues(["default", "note"]));
        let started = bench.client.submit(Note {}.call().queue("note")).await.unwrap();
        started.result_within(SOON).await.unwrap();
        assert!(is_second().await);
        let found = schedules.get("report").await.unwrap().unwrap();
        assert_eq!(found.release.as_deref(), Some("2.0.0"));
        let next = found.next_instants(3);
        assert!(next[0] > DateTime::<Utc>::from(SystemTime::now()));
        assert!(next.windows(2).all(|pair| (pair[1] - pair[0]).num_hours() == 24), "{next:?}");
        assert!(history(&bench, "report").await.is_empty() && !found.is_orphaned());
        for worker in [first, second] {
            worker.stop().await;
        }
    }

    async fn a_schedule_whose_task_is_in_another_queue_now_leaves_the_old_one(bench: Bench) {
        let schedules = bench.client.schedules();
        let queue_of = async || Some(schedules.get("report").await.unwrap()?.queue.to_string());
        let old = bench.start(bench.worker().task_type::<ReportV2>());
        eventually("it is stored", SOON, async || queue_of().await.is_some()).await;
        old.stop().await;
        let new = bench.start(bench.worker().task_type::<ReportMoved>().queues(["reports"]));
        eventually("it has moved", SOON, async || {
            queue_of().await.as_deref() == Some("reports")
        })
        .await;
        new.stop().await;
        let left = bench.client.broker().queues_with_schedule("report").await.unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    async fn a_schedule_that_no_worker_has_in_its_code_is_not_ticked(bench: Bench) {
        let removed = ReportOften::schedule().unwrap();
        put_ago(&bench, Duration::from_secs(90), removed).await;
        let seen = Seen::default();
        let worker = start(&bench, &seen);
        bench.client.schedules().put(secondly("beat")).await.unwrap();
        seen.count.wait_for(2).await;
        assert!(history(&bench, "report").await.is_empty());
        let found = bench.client.schedules().get("report").await.unwrap().unwrap();
        assert!(found.is_orphaned(), "it is due since more than a minute");
        let owner = bench.start(bench.worker().task_type::<ReportOften>());
        eventually("a worker that has it ticks it", SOON, async || {
            !history(&bench, "report").await.is_empty()
        })
        .await;
        owner.stop().await;
        worker.stop().await;
        assert!(bench.client.schedules().remove("report").await.unwrap());
        assert!(bench.client.schedules().get("report").await.unwrap().is_none());
    }

    async fn a_schedule_is_paused_resumed_run_at_once_and_removed(bench: Bench) {
        let (schedules, seen) = (bench.client.schedules(), Seen::default());
        for name in ["none", "beat"] {
            let known = name == "beat";
            if known {
                schedules.put(secondly("beat").jitter(Duration::ZERO)).await.unwrap();
            }
            assert_eq!(schedules.pause(name, "ann").await.unwrap(), known);
            assert_eq!(schedules.run_now(name).await.unwrap().is_some(), known);
        }
        let worker = start(&bench, &seen);
        seen.count.wait_for(1).await;
        schedules.put(secondly("clock")).await.unwrap();
        seen.count.wait_for(3).await;
        let paused = schedules.get("beat").await.unwrap().unwrap();
        assert_eq!(paused.paused.as_ref().map(|(_, by)| by.as_str()), Some("ann"));
        assert_eq!((paused.next, paused.last), (None, None));
        let ticks = history(&bench, "beat").await;
        assert!(ticks.len() == 1 && ticks[0].by_hand, "{ticks:?}");
        assert!(schedules.resume("beat").await.unwrap());
        eventually("it ticks again", SOON, async || history(&bench, "beat").await.len() > 2).await;
        let page = schedules.list("default", None, 10).await.unwrap();
        let mut names: Vec<&str> = page.rows.iter().map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!((names, page.next.is_none()), (vec!["beat", "clock"], true));
        assert!(schedules.remove("beat").await.unwrap());
        assert!(!schedules.remove("beat").await.unwrap());
        assert!(history(&bench, "beat").await.is_empty());
        worker.stop().await;
        let first = &seen.ticks.lock().unwrap()[0];
        assert_eq!(first.as_ref().and_then(|tick| tick.schedule()), Some("beat"));
    }

    async fn a_put_in_another_queue_moves_the_schedule(bench: Bench) {
        let schedules = bench.client.schedules();
        schedules.put(secondly("beat")).await.unwrap();
        schedules.put(secondly("beat").call(Note {}.call().queue("other"))).await.unwrap();
        let queues = bench.client.broker().queues_with_schedule("beat").await.unwrap();
        assert_eq!(queues, [QueueName::new("other").unwrap()]);
        let code = ReportV1::schedule().unwrap().check().unwrap();
        store_schedule(bench.client.broker(), &code).await.unwrap();
        bench.client.broker().announce(&queue()).await.unwrap();
        let taken = Schedule::cron("report", "@daily").call(Note {}.call().queue("other"));
        let problem = schedules.put(taken).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("#[optimus::cron]"));
    }
}

/// The worker of a child process. It runs until it is killed.
#[tokio::test]
#[ignore = "another test starts it as a process"]
async fn child_worker() {
    let bench = Bench::of_parent().await;
    bench.worker().task_type::<Note>().build().unwrap().run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_instant_has_one_task_while_workers_are_killed() {
    let bench = Bench::on_redis().await;
    let schedules = bench.client.schedules();
    schedules.put(secondly("beat").missed(Missed::All)).await.unwrap();
    let spawn = || bench.child("schedules::child_worker").start();
    let mut workers: Vec<_> = (0..3).map(|_| spawn()).collect();
    for ticks in 1..=6 {
        eventually("the schedule goes on", SOON, async || {
            history(&bench, "beat").await.len() >= ticks
        })
        .await;
        workers.remove(0).kill9();
        workers.push(spawn());
    }
    schedules.pause("beat", "the test").await.unwrap();
    let ids = each_second_once(history(&bench, "beat").await);
    assert!(ids.len() >= 6);
    for id in ids {
        let handle = bench.client.handle::<()>(id);
        eventually("each task ends", SOON, async || {
            handle.status().await.unwrap() == TaskState::Success
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schedules_of_code_return_after_redis_has_lost_everything() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let worker = bench.start(bench.worker().task_type::<ReportV1>());
    let is_stored = async || bench.client.schedules().get("report").await.unwrap().is_some();
    eventually("it is stored", SOON, is_stored).await;
    bench.raw().await.run("FLUSHALL").await;
    assert!(!is_stored().await);
    eventually("it returns", SOON, is_stored).await;
    worker.stop().await;
}
