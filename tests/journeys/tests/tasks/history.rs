//! What a queue keeps of the tasks that succeeded or died, page by page.

use std::{collections::HashSet, time::Duration};

use crate::common::Bench;
use optimus_core::{
    BoxError, Context, Fatal, HistoryFilter, HistoryOptions, HistoryPage, HistoryRow, QueueAnswer,
    Task, TaskId, TaskOptions, TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(40);

/// Dies if its number is a multiple of 100.
#[derive(Serialize, Deserialize)]
struct Deliver {
    number: u32,
}

impl Task for Deliver {
    const NAME: &'static str = "deliver";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        if self.number.is_multiple_of(100) {
            return Err(Fatal::new(format!("street {} is closed", self.number)).into());
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Other {}

impl Task for Other {
    const NAME: &'static str = "other";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Lets this many tasks end, from that number on.
async fn end(bench: &Bench, first: u32, count: u32) -> Vec<TaskId> {
    let calls = (first..first + count).map(|number| Deliver { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    let inspector = bench.client.inspector();
    eventually("all have ended", PATIENCE, async || {
        let counts = inspector.counts("default").await.unwrap();
        counts.ready + counts.working == 0
    })
    .await;
    handles.iter().map(|handle| handle.id().clone()).collect()
}

async fn page(
    bench: &Bench,
    filter: &HistoryFilter,
    before: &HistoryPage,
    limit: usize,
) -> HistoryPage {
    let inspector = bench.client.inspector();
    inspector.history("default", filter, before.next.as_ref(), limit).await.unwrap()
}

/// Reads all pages.
async fn all(bench: &Bench, filter: &HistoryFilter) -> Vec<HistoryRow> {
    let mut rows = Vec::new();
    let mut last = page(bench, filter, &HistoryPage::default(), 7).await;
    loop {
        rows.extend(std::mem::take(&mut last.rows));
        if last.next.is_none() {
            return rows;
        }
        last = page(bench, filter, &last, 100).await;
    }
}

async fn today(bench: &Bench) -> HistoryFilter {
    HistoryFilter::day(bench.client.inspector().now().await.unwrap().date_naive())
}

#[tokio::test]
async fn each_task_is_on_one_page_while_others_end() {
    let bench = Bench::on_memory().await;
    bench.client.keep_history("default", &HistoryOptions::days(180)).await.unwrap();
    let worker = bench.start(bench.worker().concurrency(100).task_type::<Deliver>());
    let mut ended = end(&bench, 1, 1_400).await;
    let filter = today(&bench).await;
    let mut rows = Vec::new();
    let mut last = page(&bench, &filter, &HistoryPage::default(), 100).await;
    for turn in 1..4 {
        rows.extend(std::mem::take(&mut last.rows));
        // Some leave the last successes meanwhile.
        ended.extend(end(&bench, turn * 1_000 + 501, 150).await);
        last = page(&bench, &filter, &last, 100).await;
    }
    rows.extend(last.rows.clone());
    while last.next.is_some() {
        last = page(&bench, &filter, &last, 100).await;
        rows.extend(last.rows.clone());
    }
    let found: HashSet<&TaskId> = rows.iter().map(|row| &row.id).collect();
    let deaths = rows.iter().filter(|row| row.state == TaskState::Dead).count();
    // The deaths of the first read come first. Those of later tasks are behind its place.
    let missed: Vec<_> = ended.iter().filter(|id| !found.contains(id)).collect();
    assert!(missed.len() <= 3 && deaths >= 14, "{} missed, {deaths} dead", missed.len());
    assert!(rows.len() - found.len() <= 300, "{} rows twice", rows.len() - found.len());
    worker.stop().await;
    let rows = all(&bench, &filter).await;
    let found: HashSet<&TaskId> = rows.iter().map(|row| &row.id).collect();
    assert_eq!((rows.len(), found.len()), (ended.len(), ended.len()));
    assert!(rows.iter().all(|row| row.task == "deliver" && row.worker.is_some()));
    assert!(rows.is_sorted_by_key(|row| row.state != TaskState::Dead));
}

#[tokio::test]
async fn what_failed_is_found_by_its_state_and_its_task() {
    let bench = Bench::on_redis().await;
    let kept = HistoryOptions::days(2).tasks(["deliver", "other"]);
    let answer = bench.client.keep_history("default", &kept).await.unwrap();
    assert_eq!(answer, QueueAnswer::Unknown, "it kept nothing before");
    let worker = bench.worker().concurrency(50).task_type::<Deliver>().task_type::<Other>();
    let worker = bench.start(worker);
    bench.client.submit(Other {}.call()).await.unwrap();
    end(&bench, 1, 1_200).await;
    worker.stop().await;
    let filter = today(&bench).await;
    let failed = all(&bench, &filter.clone().state(TaskState::Dead).task("deliver")).await;
    assert_eq!(failed.len(), 12);
    for row in &failed {
        let error = row.error.as_ref().unwrap();
        assert!(error.message.starts_with("street "), "{error:?}");
        assert_eq!((row.attempt, error.attempt, error.at), (1, 1, row.ended));
        assert!(row.took < PATIENCE && error.fingerprint.is_some());
    }
    let others = all(&bench, &filter.clone().task("other")).await;
    assert_eq!(others.len(), 1);
    let unknown = filter.clone().task("no");
    let none = bench.client.inspector().history("default", &unknown, None, 9).await.unwrap();
    assert!(none.rows.is_empty() && none.next.is_none() && none.scanned >= 1_200, "{none:?}");
    let details = bench.client.inspector().history_details("default").await.unwrap();
    assert_eq!((details.options.as_ref(), details.days.len()), (Some(&kept), 1));
    assert!(details.days[0].success_bytes > 0 && details.days[0].dead_bytes > 0);

    bench.client.stop_history("default").await.unwrap();
    let details = bench.client.inspector().history_details("default").await.unwrap();
    assert_eq!(details.options.unwrap().kept_tasks(), Some(&[][..]));
    assert_eq!(all(&bench, &filter).await.len(), 1_201);
    assert_eq!(bench.client.remove_history("default").await.unwrap(), QueueAnswer::Known);
    let left = all(&bench, &filter).await;
    assert!((1_000..=1_128).contains(&left.len()), "the last successes: {}", left.len());
    assert_eq!(bench.client.stop_history("default").await.unwrap(), QueueAnswer::Unknown);
}

/// Its code declares a history.
#[derive(Serialize, Deserialize)]
struct Kept {}

impl Task for Kept {
    const NAME: &'static str = "kept";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().history(Duration::from_secs(180 * 86_400))
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Err(Fatal::new("it is the end").into())
    }
}

async fn start_and_stop(bench: &Bench) -> Option<HistoryOptions> {
    let builder = bench.worker().task_type::<Kept>().task_type::<Other>();
    builder.build().unwrap().run_until(async {}).await.unwrap();
    bench.client.inspector().history_details("default").await.unwrap().options
}

#[tokio::test]
async fn a_worker_keeps_what_its_tasks_declare_and_never_less_than_an_operator_has_set() {
    let bench = Bench::on_redis().await;
    let declared = HistoryOptions::days(180).tasks(["kept"]);
    for _ in 0..2 {
        assert_eq!(start_and_stop(&bench).await, Some(declared.clone()));
    }
    let worker = bench.start(bench.worker().task_type::<Kept>());
    let handle = bench.client.submit(Kept {}.call()).await.unwrap();
    handle.result().await.unwrap_err();
    worker.stop().await;
    let rows = all(&bench, &today(&bench).await).await;
    assert_eq!((rows.len(), &rows[0].id), (1, handle.id()));

    let wider = HistoryOptions::days(200).bytes(1 << 30).tasks(["other"]);
    bench.client.keep_history("default", &wider).await.unwrap();
    let both = HistoryOptions::days(200).bytes(1 << 30).tasks(["other", "kept"]);
    assert_eq!(start_and_stop(&bench).await, Some(both));
    bench.client.keep_history("default", &HistoryOptions::days(7)).await.unwrap();
    assert_eq!(start_and_stop(&bench).await, Some(HistoryOptions::days(180)));
    bench.client.stop_history("default").await.unwrap();
    let stopped = start_and_stop(&bench).await.unwrap();
    assert_eq!(stopped.kept_tasks(), Some(&[][..]), "the operator prevails");
    bench.client.remove_history("default").await.unwrap();
    assert_eq!(start_and_stop(&bench).await, Some(declared));
}
