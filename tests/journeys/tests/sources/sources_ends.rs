//! Attempts of rows that end in another way than by the error of their handler: a later page finds
//! these rows again.

use std::{sync::Arc, thread, time::Duration};

use crate::common::{
    Bench,
    rows::{OPTIONS, PARTS, Rows, bump},
};
use optimus_core::{
    BoxError, Context, Counts, Found, Page, PageFacts, QueueName, RunningScan, Source,
    SourceOptions, SourceParts, Task, TaskOptions, found_rows,
};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize};

const WITHIN: Duration = Duration::from_secs(30);
/// The row whose first handler blocks a thread of its own until it is asked to stop.
const BLOCKS: i64 = 1;
/// The row whose first handler keeps the thread of its runtime until its failure is stored.
const KEEPS: i64 = 2;
/// The row whose result is too large, each time.
const LARGE: i64 = 3;
const SOUND: i64 = 4;

#[derive(Serialize, Deserialize)]
struct Odd {
    key: i64,
}

impl Task for Odd {
    const NAME: &'static str = "odd";
    type Output = String;

    fn options() -> TaskOptions {
        TaskOptions::new().queue("odd").timeout(Duration::from_millis(300))
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let rows = ctx.data::<Rows>().ok_or("no rows")?;
        let pause = || thread::sleep(Duration::from_millis(1));
        match self.key {
            LARGE => return Ok("x".repeat(2 << 20)),
            BLOCKS if rows.row("", BLOCKS).failures == 0 => {
                let asked = ctx.clone();
                let work = move || {
                    while !asked.is_cancelled() {
                        pause();
                    }
                };
                ctx.run_blocking(work).await;
            }
            KEEPS if rows.row("", KEEPS).failures == 0 => {
                while rows.row("", KEEPS).failures == 0 {
                    pause();
                }
                return Ok(String::new());
            }
            _ => {}
        }
        rows.mark_done("", self.key);
        Ok(String::new())
    }
}

/// While its table is away, its tasks expire at once.
fn odd() -> Source {
    let scan = |facts: Arc<PageFacts>| {
        let page = Page::<i64>::of(facts.clone());
        Ok(Box::pin(async move {
            let rows = page.shard().data::<Rows>().ok_or("no rows")?;
            let found = rows.page(&page, "").into_iter().map(|(key, failures)| {
                let call = Odd { key }.call();
                let soon = Duration::from_millis(1);
                let call = if rows.is_away() { call.expires_in(soon) } else { call };
                Found::new(key).failures(failures).task(call)
            });
            Ok(found_rows(found.collect(), &facts)?)
        }) as RunningScan)
    };
    let parts = SourceParts { scan, on_failure: Some(bump), ..PARTS };
    Source::new(("odd", "odd"), SourceOptions { attempts: Some(3), ..OPTIONS }, parts)
}

fn worker(bench: &Bench, rows: &Rows) -> WorkerBuilder {
    bench.worker().concurrency(4).source(odd).task_type::<Odd>().data(rows.clone())
}

fn queue() -> QueueName {
    QueueName::new("odd").unwrap()
}

async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts(&queue()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_whose_handler_keeps_a_thread_past_its_time_is_tried_again() {
    let bench = Bench::on_memory().await;
    let rows = Rows::default();
    rows.add("", [BLOCKS, KEEPS]);
    let worker = bench.start(worker(&bench, &rows));
    eventually("both rows are done", WITHIN, async || rows.done() == 2).await;
    worker.stop().await;
    let [blocks, keeps] = [BLOCKS, KEEPS].map(|key| rows.row("", key));
    assert_eq!((blocks.failures, keeps.failures), (1, 1));
    assert!(blocks.error.contains("did not return"), "{blocks:?}");
    assert!(keeps.error.contains("still running"), "{keeps:?}");
    let counts = counts(&bench).await;
    assert_eq!((counts.dead, counts.cancelled), (0, 2));
}

on_both! {
    async fn a_row_whose_result_is_too_large_is_tried_again_until_it_is_given_up(bench: Bench) {
        let rows = Rows::default();
        rows.add("", [LARGE, SOUND]);
        let worker = bench.start(worker(&bench, &rows));
        eventually("its last task is dead", WITHIN, async || counts(&bench).await.dead == 1).await;
        eventually("its last failure is stored", WITHIN, async || {
            rows.row("", LARGE).failures == 3
        })
        .await;
        assert_eq!(counts(&bench).await.cancelled, 2);
        let error = rows.row("", LARGE).error;
        assert!(error.contains("above the limit"), "{error}");
        assert!(rows.row("", SOUND).is_done);
        worker.stop().await;
    }

    async fn a_row_whose_task_was_not_started_in_time_is_tried_again(bench: Bench) {
        let rows = Rows::default();
        rows.add("", [SOUND]);
        rows.goes_away();
        bench.client.pause(&queue()).await.unwrap();
        let worker = bench.start(worker(&bench, &rows));
        eventually("its task waits", WITHIN, async || counts(&bench).await.ready == 1).await;
        rows.comes_back();
        let broker = bench.client.broker();
        let waits_since = broker.now_ms().await.unwrap();
        let is_over = async || broker.now_ms().await.unwrap() > waits_since + 1;
        eventually("its time is over", WITHIN, is_over).await;
        bench.client.resume(&queue()).await.unwrap();
        eventually("the row is done", WITHIN, async || rows.done() == 1).await;
        worker.stop().await;
        let counts = counts(&bench).await;
        assert_eq!((counts.dead, counts.cancelled), (0, 1));
        assert_eq!(rows.row("", SOUND).failures, 0, "its handler has not run");
    }
}
