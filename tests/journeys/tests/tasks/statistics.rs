//! What operators see of what ended: totals, statistics by minutes and hours, and the causes of
//! deaths.

use std::time::Duration;

use crate::common::Bench;
use optimus_core::{
    BoxError, Cancel, Context, Fatal, QueueName, Reason, Snooze, StatsUnit, Task, TaskHandle,
    TaskStats,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(20);

/// Ends in the way that its argument states.
#[derive(Serialize, Deserialize)]
struct Deliver {
    how: String,
}

impl Task for Deliver {
    const NAME: &'static str = "deliver";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        match self.how.as_str() {
            "ok" => Ok(()),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(())
            }
            "cancel" => Err(Cancel.into()),
            "snooze" => Err(Snooze::new(PATIENCE * 10).into()),
            "panic" => panic!("the parcel 17 is lost"),
            refused => Err(Fatal::new(refused.to_owned()).into()),
        }
    }
}

async fn submit(bench: &Bench, how: &str) -> TaskHandle<()> {
    let call = Deliver { how: how.into() }.call().max_retry(u32::from(how == "panic"));
    bench.client.submit(call).await.unwrap()
}

async fn stats(bench: &Bench, unit: StatsUnit) -> TaskStats {
    let inspector = bench.client.inspector();
    inspector.stats("default", unit, unit.kept()).await.unwrap().total()
}

#[tokio::test]
async fn a_worker_that_ends_has_added_all_that_it_has_counted() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().concurrency(4).task_type::<Deliver>());
    let ways = ["ok", "ok", "slow", "cancel", "snooze", "street 12 is closed", "panic"];
    for how in ways {
        submit(&bench, how).await;
    }
    let inspector = bench.client.inspector();
    eventually("all first attempts have ended", PATIENCE, async || {
        let counts = inspector.counts("default").await.unwrap();
        counts.recent_successes == 3 && counts.dead == 1 && counts.retry + counts.delayed == 2
    })
    .await;
    worker.stop().await;
    for unit in [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day] {
        let found = stats(&bench, unit).await;
        let counts = (found.successes, found.retries, found.deaths, found.cancels, found.snoozes);
        assert_eq!(counts, (3, 1, 1, 1, 1), "{unit:?}");
        assert_eq!((found.losses, found.run.count(), found.wait.count()), (0, 7, 7));
        assert!(found.run.percentile(100.0).unwrap() >= Duration::from_millis(20), "{found:?}");
    }
    let totals = inspector.totals("default").await.unwrap();
    assert_eq!((totals.successes, totals.retries, totals.deaths, totals.cancels), (3, 1, 1, 1));
    let by_task = inspector.stats("default", StatsUnit::Hour, 1).await.unwrap().by_task();
    assert_eq!(by_task.keys().map(String::as_str).collect::<Vec<_>>(), ["deliver"]);
    assert!(inspector.stats("default", StatsUnit::Hour, 0).await.unwrap_err().is_invalid());
}

#[tokio::test]
async fn a_queue_whose_statistics_can_not_be_read_hides_no_other() {
    let bench = Bench::on_redis().await;
    let handle = submit(&bench, "ok").await;
    let worker = bench.start(bench.worker().task_type::<Deliver>());
    handle.result().await.unwrap();
    worker.stop().await;
    bench.raw().await.run(&format!("SET {} x", bench.key("foreign", "minutes"))).await;
    let queues = ["default", "foreign"].map(|name| QueueName::new(name).unwrap());
    let inspector = bench.client.inspector();
    let sum = inspector.stats_sum(&queues, StatsUnit::Minute, 60).await.unwrap();
    assert_eq!(sum.tasks["deliver"].successes, 1);
    let unreadable: Vec<_> = sum.unreadable.iter().map(|(queue, _)| queue).collect();
    assert_eq!(unreadable, [&queues[1]]);
    assert!(inspector.stats("foreign", StatsUnit::Minute, 60).await.is_err());
}

#[tokio::test]
async fn a_worker_adds_its_counts_while_it_runs() {
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().task_type::<Deliver>());
    submit(&bench, "ok").await;
    eventually("the success is counted", PATIENCE * 2, async || {
        stats(&bench, StatsUnit::Minute).await.successes == 1
    })
    .await;
    worker.stop().await;
    assert_eq!(stats(&bench, StatsUnit::Minute).await.successes, 1, "and only once");
}

#[tokio::test]
async fn dead_tasks_with_one_cause_have_one_row() {
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().task_type::<Deliver>());
    for how in ["street 12 is closed", "street 7 is closed", "nobody lives there"] {
        let problem = submit(&bench, how).await.result_within(PATIENCE).await.unwrap_err();
        assert!(problem.attempt_error().unwrap().fingerprint.is_some());
    }
    worker.stop().await;
    let found = bench.client.inspector().fingerprints("default").await.unwrap();
    assert_eq!((found.scanned, found.dead, found.rows.len()), (3, 3, 2));
    let row = &found.rows[0];
    assert_eq!(
        (row.dead, row.reason, row.task.as_deref()),
        (2, Some(Reason::Failed), Some("deliver"))
    );
    assert!(row.outline().unwrap().ends_with("street # is closed"), "{row:?}");
    assert_eq!(row.error.as_ref().unwrap().fingerprint, row.fingerprint);
    let json = serde_json::to_string(&found).unwrap();
    assert!(json.contains("street # is closed"), "{json}");
}

/// A process that the next test kills.
#[tokio::test]
#[ignore = "the next test starts it as a process"]
async fn a_worker_process_for_the_next_test() {
    let bench = Bench::of_parent().await;
    bench.worker().task_type::<Deliver>().build().unwrap().run().await.unwrap();
}

#[tokio::test]
async fn a_worker_that_is_killed_loses_only_its_last_counts_and_totals_lose_nothing() {
    let bench = Bench::on_redis().await;
    let mut doomed = bench.child("statistics::a_worker_process_for_the_next_test").start();
    submit(&bench, "ok").await.result_within(PATIENCE).await.unwrap();
    eventually("the worker adds its counts", PATIENCE * 2, async || {
        stats(&bench, StatsUnit::Day).await.successes == 1
    })
    .await;
    for _ in 0..5 {
        submit(&bench, "ok").await.result_within(PATIENCE).await.unwrap();
    }
    doomed.kill9();
    let counted = stats(&bench, StatsUnit::Day).await.successes;
    assert!((1..=6).contains(&counted), "{counted}");
    let totals = bench.client.inspector().totals("default").await.unwrap();
    assert_eq!(totals.successes, 6, "totals are written with the ends");
}
