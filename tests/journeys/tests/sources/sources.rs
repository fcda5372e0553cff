//! Sources: rows become tasks once, rows that fail come back later, and what operators see and do.

use std::time::{Duration, Instant};

use crate::common::{
    Bench,
    rows::{OPTIONS, PARTS, Pay, Rows, Way, checked, rows, scan},
};
use optimus_core::{
    Archive, Counts, Found, Page, QueueName, Source, SourceDetails, SourceOptions, SourceParts,
    Task as _, TaskState, found_rows,
};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;

const WITHIN: Duration = Duration::from_secs(20);

/// A worker that only scans.
fn scanner(bench: &Bench, rows: &Rows, source: fn() -> Source) -> WorkerBuilder {
    bench.worker().lease(Duration::from_secs(1)).source(source).data(rows.clone())
}

/// A worker that scans and runs the tasks.
fn worker(bench: &Bench, rows: &Rows, source: fn() -> Source) -> WorkerBuilder {
    scanner(bench, rows, source).task_type::<Pay>()
}

async fn counts(bench: &Bench) -> Counts {
    let queue = QueueName::new("pay").unwrap();
    bench.client.inspector().counts(&queue).await.unwrap()
}

async fn look(bench: &Bench, name: &str) -> SourceDetails {
    bench.client.source(name).look().await.unwrap()
}

async fn are_done(rows: &Rows, count: usize) {
    eventually("the rows are done", WITHIN, async || rows.done() == count).await;
}

/// Skips odd rows after the query, as user code may.
fn even() -> Source {
    let scan = |facts: std::sync::Arc<optimus_core::PageFacts>| {
        let page = Page::<i64>::of(facts.clone());
        Ok(Box::pin(async move {
            let after = page.after().copied().unwrap_or(-1);
            let rows = page.shard().data::<Rows>().ok_or("no rows")?;
            let keys = after + 1..(after + 1 + i64::from(page.limit())).min(100);
            let found = keys.filter(|key| key % 2 == 0 && !rows.row("", *key).is_done);
            let found =
                found.map(|key| Found::new(key).task(Pay { table: String::new(), key }.call()));
            Ok(found_rows(found.collect(), &facts)?)
        }) as optimus_core::RunningScan)
    };
    Source::new(("even", "even"), OPTIONS, SourceParts { scan, ..PARTS })
}

fn small_queue() -> Source {
    Source::new(("small", "small"), SourceOptions { high_water: 50, ..OPTIONS }, PARTS)
}

fn archived() -> Source {
    let archive = |request: Archive| {
        Ok(Box::pin(async move {
            let rows = request.data::<Rows>()?;
            assert!(request.before() < chrono_now());
            rows.mark_done("archive", i64::from(request.slice()));
            Ok(1_u64)
        }) as optimus_core::RunningArchive)
    };
    let options = SourceOptions { archive_after: Some(WITHIN), slices: 2, ..OPTIONS };
    Source::new(("archived", "archived"), options, SourceParts { archive: Some(archive), ..PARTS })
}

fn chrono_now() -> optimus_core::DateTime<optimus_core::Utc> {
    optimus_core::DateTime::from(std::time::SystemTime::now())
}

/// Its tables panic, hang, and work.
fn odd_tables() -> Source {
    let scan = |facts: std::sync::Arc<optimus_core::PageFacts>| match facts.table.as_deref() {
        Some("panics") => panic!("asked to panic"),
        Some("hangs") => Ok(Box::pin(std::future::pending()) as optimus_core::RunningScan),
        _ => scan(facts),
    };
    let tables = || ["panics", "hangs", "works"].map(str::to_owned).to_vec();
    Source::new(("odd", "odd"), OPTIONS, SourceParts { scan, tables, ..PARTS })
}

on_both! {
    async fn each_row_of_many_pages_has_one_task(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..250);
        let worker = bench.start(worker(&bench, &table, rows));
        are_done(&table, 250).await;
        table.add("", 250..260);
        are_done(&table, 260).await;
        assert_eq!(table.runs(), 260);
        worker.stop().await;
        let seen = look(&bench, "rows").await;
        let scans = &seen.slices[0].scans;
        assert_eq!(bench.client.sources().await.unwrap(), ["rows"]);
        assert!(scans.submitted >= 250 && scans.passes >= 1 && scans.at().is_some(), "{scans:?}");
        assert!(bench.client.shard_names().await.unwrap().is_empty());
    }

    async fn a_page_that_is_shorter_than_its_limit_does_not_end_the_pass(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..100);
        let worker = bench.start(worker(&bench, &table, even));
        are_done(&table, 50).await;
        worker.stop().await;
    }

    async fn rows_that_fail_come_back_until_they_are_given_up(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..6);
        for (key, way) in [(1, Way::Fail), (3, Way::Panic), (5, Way::Hang)] {
            table.lets(key, way);
        }
        let worker = bench.start(worker(&bench, &table, checked));
        let given_up = async || [1, 3, 5].iter().all(|key| table.row("", *key).failures == 3);
        eventually("three rows are given up", WITHIN, given_up).await;
        eventually("the last failures are dead", WITHIN, async || counts(&bench).await.dead == 3)
            .await;
        let seen = eventually_given_up(&bench).await;
        assert!(seen > 0);
        assert_eq!((table.done(), table.runs()), (3, 3 + 3 * 3));
        assert!(counts(&bench).await.cancelled >= 6, "the other failures are no dead tasks");
        let queue = QueueName::new("pay").unwrap();
        let inspector = bench.client.inspector();
        let cancelled = inspector.list(&queue, TaskState::Cancelled, None, 100).await.unwrap();
        let errors = cancelled.rows.into_iter().filter_map(|row| row.last_error);
        let messages: Vec<String> = errors.map(|error| error.message).collect();
        assert!(messages.iter().any(|text| text == "the bank is away"), "{messages:?}");
        assert!(!messages.iter().any(|text| text.contains("by its handler")), "{messages:?}");
        let errors = [1, 3, 5].map(|key| table.row("", key).error);
        assert!(errors[0].contains("the bank is away"), "{errors:?}");
        assert!(errors[1].contains("asked to panic"), "{errors:?}");
        assert!(errors[2].contains("did not return"), "{errors:?}");
        let dead = inspector.list(&queue, TaskState::Dead, None, 100).await.unwrap();
        let why = inspector.explain(&dead.rows[0].id).await.unwrap().to_string();
        assert!(why.contains("2. before the requeue, set the failures of its row to 0"), "{why}");
        worker.stop().await;
    }

    async fn a_row_is_checked_again_when_its_task_starts(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..3);
        let scans = bench.start(scanner(&bench, &table, checked));
        eventually("the tasks wait", WITHIN, async || counts(&bench).await.ready == 3).await;
        scans.stop().await;
        // Meanwhile the first row was paid in another way, and the second one has failed too often.
        table.mark_done("", 0);
        for _ in 0..3 {
            table.fail("", 1, "before");
        }
        let runs = bench.worker().task_type::<Pay>().source(checked).without_sources();
        let runs = bench.start(runs.data(table.clone()));
        are_done(&table, 2).await;
        eventually("two are cancelled", WITHIN, async || counts(&bench).await.cancelled == 2).await;
        assert_eq!((table.runs(), table.row("", 2).runs), (1, 1));
        runs.stop().await;
    }

    async fn a_worker_without_the_source_gives_tasks_with_checks_to_another(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..3);
        let stranger = bench.start(bench.worker().task_type::<Pay>().data(table.clone()));
        let scans = bench.start(scanner(&bench, &table, checked));
        let queue = QueueName::new("pay").unwrap();
        let inspector = bench.client.inspector();
        eventually("a task was given back", WITHIN, async || {
            let page = inspector.list(&queue, TaskState::Delayed, None, 10).await.unwrap();
            !page.rows.is_empty()
        })
        .await;
        assert_eq!(table.runs(), 0);
        let knows = bench.worker().task_type::<Pay>().source(checked).data(table.clone());
        let knows = bench.start(knows);
        stranger.stop().await;
        are_done(&table, 3).await;
        scans.stop().await;
        knows.stop().await;
    }

    async fn no_page_is_read_while_the_queue_is_full(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..200);
        let scans = bench.start(scanner(&bench, &table, small_queue));
        eventually("the queue is full", WITHIN, async || counts(&bench).await.ready >= 50).await;
        let pages = table.pages();
        eventually("the slice has looked again", WITHIN, async || {
            look(&bench, "small").await.slices[0].scans.pages >= 3
        })
        .await;
        assert_eq!((counts(&bench).await.ready, pages), (60, 3));
        let runs = bench.worker().task_type::<Pay>().source(small_queue).without_sources();
        let runs = bench.start(runs.data(table.clone()));
        are_done(&table, 200).await;
        assert_eq!(table.runs(), 200);
        runs.stop().await;
        scans.stop().await;
    }

    async fn a_failing_target_slows_its_source_until_it_works_again(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..500);
        table.goes_away();
        let worker = bench.start(worker(&bench, &table, slow).concurrency(4));
        eventually("the source is slow", WITHIN, async || {
            look(&bench, "slow").await.slow_since.is_some()
        })
        .await;
        let mut seen = (table.pages(), Instant::now());
        eventually("no pages are read", WITHIN, async || {
            let counts = counts(&bench).await;
            if table.pages() != seen.0 || counts.ready + counts.working > 0 {
                seen = (table.pages(), Instant::now());
            }
            seen.1.elapsed() > Duration::from_millis(1_300)
        })
        .await;
        assert!(table.done() == 0 && look(&bench, "slow").await.slow_since.is_some());
        table.comes_back();
        bench.client.source("slow").scan_now().await.unwrap();
        are_done(&table, 500).await;
        assert!(look(&bench, "slow").await.slow_since.is_none());
        worker.stop().await;
    }

    async fn a_table_that_panics_or_hangs_does_not_stop_the_others(bench: Bench) {
        let table = Rows::default();
        table.add("works", 0..30);
        let worker = bench.start(worker(&bench, &table, odd_tables));
        are_done(&table, 30).await;
        eventually("its failures are seen", WITHIN, async || {
            look(&bench, "odd").await.slices[0].scans.failed >= 2
        })
        .await;
        worker.stop().await;
    }

    async fn old_rows_are_archived_in_each_slice(bench: Bench) {
        let table = Rows::default();
        let worker = bench.start(worker(&bench, &table, archived));
        are_done(&table, 2).await;
        eventually("it is counted", WITHIN, async || {
            look(&bench, "archived").await.slices.iter().all(|slice| slice.scans.archived == 1)
        })
        .await;
        worker.stop().await;
    }

    async fn an_operator_pauses_a_source_and_changes_its_slices(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..50);
        let unknown = bench.client.source("rows").scan_now().await.unwrap_err();
        assert!(unknown.is_invalid() && unknown.to_string().contains("no worker"), "{unknown}");
        let resumed = bench.client.source("rows").resume().await.unwrap();
        assert_eq!((resumed.is_changed, resumed.is_known), (false, false));
        assert!(bench.client.source("a b").look().await.unwrap_err().is_invalid());
        let worker = bench.start(worker(&bench, &table, rows));
        are_done(&table, 50).await;
        let source = bench.client.source("rows");
        assert!(source.because("ann", "a repair").pause().await.unwrap().is_changed);
        eventually("the slice is given back", WITHIN, async || {
            look(&bench, "rows").await.slices[0].holder.is_none()
        })
        .await;
        let paused = look(&bench, "rows").await.paused.unwrap();
        assert_eq!((&*paused.by, &*paused.why), ("ann", "a repair"));
        table.add("", 50..60);
        assert!(source.resume().await.unwrap().is_changed);
        assert!(!source.resume().await.unwrap().is_changed);
        are_done(&table, 60).await;
        assert!(source.set_slices(0).await.unwrap_err().is_invalid());
        assert_eq!(source.set_slices(4).await.unwrap(), 1);
        eventually("all slices are held", WITHIN, async || {
            let slices = look(&bench, "rows").await.slices;
            slices.len() == 4 && slices.iter().all(|slice| slice.holder.is_some())
        })
        .await;
        table.add("", 60..100);
        are_done(&table, 100).await;
        assert_eq!(table.runs(), 100);
        worker.stop().await;
    }
}

fn slow() -> Source {
    Source::new(
        ("slow", "slow"),
        SourceOptions { attempts: None, ..OPTIONS },
        SourceParts {
            on_failure: Some(|_| {
                Ok(Box::pin(std::future::ready(Ok(()))) as optimus_core::RunningNote)
            }),
            ..PARTS
        },
    )
}

/// Waits until rows that are given up are seen, and returns how often.
async fn eventually_given_up(bench: &Bench) -> u64 {
    eventually("rows are given up", WITHIN, async || {
        look(bench, "checked").await.slices[0].scans.given_up > 0
    })
    .await;
    look(bench, "checked").await.slices[0].scans.given_up
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_wrong_source_does_not_start() {
    let bench = Bench::on_memory().await;
    let problem = bench.worker().source(rows).build().unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("needs data"), "{problem}");
    let other = || Source::new(("rows", "elsewhere"), OPTIONS, PARTS);
    let two = bench.worker().source(rows).source(other).data(Rows::default());
    assert!(two.build().unwrap_err().to_string().contains("two sources"));
}
