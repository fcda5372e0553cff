//! Sources whose code or data is wrong: a key of another type after a deploy, rows that can't be
//! submitted, hooks that hang or have errors without text, and numbers that can't be.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use crate::common::{
    Bench,
    rows::{OPTIONS, PARTS, Pay, Rows, bump, scan},
};
use optimus_core::{
    BoxError, Context, Counts, Found, Page, PageFacts, QueueName, RowFacts, RunningArchive,
    RunningCheck, RunningNote, RunningScan, SliceScans, Source, SourceOptions, SourceParts, Task,
    TaskOptions, Tier, found_rows,
};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize, Serializer};

const WITHIN: Duration = Duration::from_secs(20);
const ONE: SourceOptions = SourceOptions {
    tiers: &[Tier { least: 0, most: u32::MAX, every: Duration::from_millis(100) }],
    attempts: None,
    ..OPTIONS
};

/// How often the task of each row has run.
#[derive(Clone, Default)]
struct Ran(Arc<Mutex<BTreeMap<String, u32>>>);

impl Ran {
    fn has(&self, key: &str) -> bool {
        self.0.lock().unwrap().contains_key(key)
    }

    fn count(&self, start: &str) -> usize {
        self.0.lock().unwrap().keys().filter(|key| key.starts_with(start)).count()
    }
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
enum Text {
    Fine,
    Fails,
    Panics,
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fine => to.serialize_unit_variant("Text", 0, "Fine"),
            Self::Fails => Err(serde::ser::Error::custom("no text")),
            Self::Panics => panic!("no text"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Note {
    key: String,
    text: Text,
}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue("note")
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let ran = ctx.data::<Ran>().ok_or("no data")?;
        *ran.0.lock().unwrap().entry(self.key).or_default() += 1;
        Ok(())
    }
}

fn noting(bench: &Bench, ran: &Ran, source: fn() -> Source) -> WorkerBuilder {
    let worker = bench.worker().lease(Duration::from_secs(1)).source(source);
    worker.task_type::<Note>().data(ran.clone()).data(Rows::default())
}

async fn scans(bench: &Bench, name: &str) -> SliceScans {
    let seen = bench.client.source(name).look().await.unwrap();
    seen.slices.into_iter().next().map(|slice| slice.scans).unwrap_or_default()
}

async fn counts(bench: &Bench) -> Counts {
    let queue = QueueName::new("pay").unwrap();
    bench.client.inspector().counts(&queue).await.unwrap()
}

/// Reads rows with numbers, without an end.
fn by_number() -> Source {
    let scan = |facts: Arc<PageFacts>| {
        let page = Page::<i64>::of(facts.clone());
        Ok(Box::pin(async move {
            let after = page.after().copied().unwrap_or(-1);
            let keys = after + 1..=after + i64::from(page.limit());
            Ok(found_rows(keys.map(Found::new).collect(), &facts)?)
        }) as RunningScan)
    };
    Source::new(("typed", "typed"), ONE, SourceParts { scan, ..PARTS })
}

/// Reads three rows with texts from the same table, after a deploy.
fn by_text() -> Source {
    let scan = |facts: Arc<PageFacts>| {
        let page = Page::<String>::of(facts.clone());
        Ok(Box::pin(async move {
            let keys = ["a", "b", "c"].map(str::to_owned).into_iter();
            let found = keys.filter(|key| page.after().is_none_or(|after| key > after));
            let found = found
                .map(|key| Found::new(key.clone()).task(Note { key, text: Text::Fine }.call()));
            Ok(found_rows(found.collect(), &facts)?)
        }) as RunningScan)
    };
    Source::new(("typed", "typed"), ONE, SourceParts { scan, ..PARTS })
}

/// Its query has no `ORDER BY`.
fn unordered() -> Source {
    let scan = |facts: Arc<PageFacts>| {
        Ok(Box::pin(async move {
            let call = |key: i64| Pay { table: String::new(), key }.call();
            let found = [3, 1, 2].map(|key| Found::new(key).task(call(key)));
            Ok(found_rows(found.into(), &facts)?)
        }) as RunningScan)
    };
    Source::new(("unordered", "unordered"), ONE, SourceParts { scan, ..PARTS })
}

/// Each table has ten rows; one of them can't be submitted.
fn poisoned() -> Source {
    let scan = |facts: Arc<PageFacts>| {
        let page = Page::<String>::of(facts.clone());
        Ok(Box::pin(async move {
            let table = page.table().to_owned();
            let mut keys: Vec<String> = (0..10).map(|at| format!("k{at}")).collect();
            match &*table {
                "long" => keys[5].push_str(&"x".repeat(200)),
                "long at last" => keys[9].push_str(&"x".repeat(200)),
                _ => {}
            }
            let found = keys.into_iter().filter(|key| page.after().is_none_or(|last| key > last));
            let found = found.take(usize::try_from(page.limit())?).map(|key| {
                let text = match (&*table, &*key) {
                    ("fails", "k5") => Text::Fails,
                    ("panics", "k5") => Text::Panics,
                    _ => Text::Fine,
                };
                let note = Note { key: format!("{table}/{key}"), text };
                Found::new(key).task(note.call())
            });
            Ok(found_rows(found.collect(), &facts)?)
        }) as RunningScan)
    };
    let tables = || ["fine", "fails", "panics", "long", "long at last"].map(str::to_owned).to_vec();
    let options = SourceOptions { page: 4, ..ONE };
    Source::new(("poisoned", "poisoned"), options, SourceParts { scan, tables, ..PARTS })
}

/// An error without a text.
#[derive(Debug)]
struct Mute;

impl fmt::Display for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("it has no text")
    }
}

impl std::error::Error for Mute {}

/// Stores the failure, and fails nevertheless.
fn mute_bump(facts: RowFacts) -> Result<RunningNote, BoxError> {
    let stored = bump(facts)?;
    Ok(Box::pin(async move {
        stored.await?;
        Err(Mute.into())
    }))
}

fn with_mute_check() -> Source {
    let parts = SourceParts {
        before: Some(|_| Ok(Box::pin(async { Err(Mute.into()) }) as RunningCheck)),
        on_failure: Some(bump),
        ..PARTS
    };
    Source::new(("mute", "mute"), ONE, parts)
}

fn with_hanging_check() -> Source {
    let parts = SourceParts {
        before: Some(|_| Ok(Box::pin(std::future::pending()) as RunningCheck)),
        on_failure: Some(bump),
        ..PARTS
    };
    Source::new(("hanging", "hanging"), ONE, parts)
}

fn with_mute_bump() -> Source {
    let parts = SourceParts { on_failure: Some(mute_bump), ..PARTS };
    Source::new(("bumps", "bumps"), ONE, parts)
}

static PROBED: AtomicU32 = AtomicU32::new(0);

/// Counts the pages of probes. A pass takes far less than 5 s, so a probe begins with a pass, and
/// does not end early with the end of one.
fn probed() -> Source {
    const RARELY: &[Tier] = &[Tier { least: 0, most: u32::MAX, every: Duration::from_secs(5) }];
    let scan = |facts: Arc<PageFacts>| {
        if facts.limit == 10 {
            PROBED.fetch_add(1, SeqCst);
        }
        scan(facts)
    };
    let options = SourceOptions { tiers: RARELY, ..ONE };
    Source::new(("probed", "probed"), options, SourceParts { scan, ..PARTS })
}

fn archives_too_much() -> Source {
    let archive = |_| Ok(Box::pin(std::future::ready(Ok(u64::MAX))) as RunningArchive);
    let options = SourceOptions { archive_after: Some(WITHIN), ..ONE };
    Source::new(("old", "old"), options, SourceParts { archive: Some(archive), ..PARTS })
}

on_both! {
    async fn a_pass_whose_keys_have_another_type_since_a_deploy_begins_again(bench: Bench) {
        let ran = Ran::default();
        let before = bench.start(noting(&bench, &ran, by_number));
        eventually("a pass is under way", WITHIN, async || scans(&bench, "typed").await.pages > 9)
            .await;
        before.stop().await;
        let after = bench.start(noting(&bench, &ran, by_text));
        eventually("all rows are found", WITHIN, async || ran.count("") == 3).await;
        assert_eq!(scans(&bench, "typed").await.failed, 0);
        after.stop().await;
    }

    async fn a_page_whose_rows_are_not_in_the_order_of_their_keys_is_an_error(bench: Bench) {
        let worker = bench.start(noting(&bench, &Ran::default(), unordered));
        eventually("it fails", WITHIN, async || scans(&bench, "unordered").await.failed > 0).await;
        let error = scans(&bench, "unordered").await.error;
        assert!(error.contains("the key 1 comes after 3") && error.contains("ORDER BY"), "{error}");
        assert_eq!(scans(&bench, "unordered").await.submitted, 0);
        worker.stop().await;
    }

    async fn a_row_that_can_not_be_submitted_stops_no_other_row(bench: Bench) {
        let ran = Ran::default();
        let worker = bench.start(noting(&bench, &ran, poisoned));
        eventually("all sound rows are done", WITHIN, async || ran.count("") == 10 + 4 * 9).await;
        eventually("several passes have ended", WITHIN, async || {
            scans(&bench, "poisoned").await.passes > 10
        })
        .await;
        assert!(ran.has("long/k9") && ran.has("panics/k4") && ran.has("long at last/k8"));
        worker.stop().await;
        let scans = scans(&bench, "poisoned").await;
        assert!(scans.refused >= 4 && scans.failed == 0, "{scans:?}");
        assert!(scans.refusal.starts_with("\"k"), "{scans:?}");
    }

    async fn a_check_that_hangs_or_fails_without_text_is_no_failure_of_its_row(bench: Bench) {
        for source in [with_mute_check as fn() -> Source, with_hanging_check] {
            let (table, cancelled) = (Rows::default(), counts(&bench).await.cancelled);
            table.add("", 0..1);
            let worker = bench.worker().source(source).task_type::<Pay>().data(table.clone());
            let worker = bench.start(worker);
            eventually("its task is cancelled", WITHIN, async || {
                counts(&bench).await.cancelled > cancelled + 1
            })
            .await;
            worker.stop().await;
            let row = table.row("", 0);
            assert_eq!((row.runs, row.failures, &*row.error), (0, 0, ""));
        }
    }

    async fn a_failure_is_stored_once_also_if_the_hook_fails_without_text(bench: Bench) {
        let table = Rows::default();
        table.add("", 0..1);
        table.goes_away();
        let worker = bench.worker().source(with_mute_bump).task_type::<Pay>().data(table.clone());
        let worker = bench.start(worker);
        eventually("it is dead", WITHIN, async || counts(&bench).await.dead == 1).await;
        eventually("its end is counted", WITHIN, async || {
            scans(&bench, "bumps").await.known > 1
        })
        .await;
        worker.stop().await;
        let row = table.row("", 0);
        assert_eq!((row.runs, row.failures, &*row.error), (1, 1, "the bank is away"));
    }

    async fn an_archival_of_more_rows_than_its_limit_is_an_error_and_ends_nothing(bench: Bench) {
        let table = Rows::default();
        let worker = bench.worker().source(archives_too_much).task_type::<Pay>();
        let worker = bench.start(worker.data(table.clone()));
        eventually("it has failed", WITHIN, async || scans(&bench, "old").await.failed > 0).await;
        table.add("", 0..5);
        eventually("all rows are done", WITHIN, async || table.done() == 5).await;
        let seen = bench.client.source("old").look().await.unwrap();
        assert!(seen.slices[0].holder.is_some() && seen.slices[0].scans.archived == 0, "{seen:?}");
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_of_a_slow_source_ends_after_ten_pages() {
    let bench = Bench::on_redis().await;
    let table = Rows::default();
    table.add("", 0..1_000);
    let worker = bench.start(bench.worker().source(probed).data(table));
    eventually("all rows have tasks", WITHIN, async || {
        scans(&bench, "probed").await.submitted == 1_000
    })
    .await;
    // Slow for long, so a probe is due.
    let control = bench.key("@sources.probed", "control");
    let slow = format!("HSET {control} slow_since 1 probed_at 1");
    bench.raw().await.run(&slow).await;
    let mut seen = (0, Instant::now());
    eventually("a probe has ended", WITHIN, async || {
        if PROBED.load(SeqCst) != seen.0 {
            seen = (PROBED.load(SeqCst), Instant::now());
        }
        seen.0 > 0 && seen.1.elapsed() > Duration::from_millis(1_300)
    })
    .await;
    assert_eq!(seen.0, 10);
    worker.stop().await;
}
