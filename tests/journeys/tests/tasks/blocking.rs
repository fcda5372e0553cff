//! Handlers that block their own threads, and may not return.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, view};
use optimus_core::{Backoff, BoxError, Context, DataKey, Reason, Task, TaskOptions, TaskState};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

const PATIENCE: Duration = Duration::from_secs(15);

/// The state that a test and its handlers share.
#[derive(Clone, Default)]
struct Hold {
    began: Signal,
    asked: Signal,
    released: Arc<AtomicBool>,
}

impl Hold {
    fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
    }
}

/// Keeps a thread until it is released, and signals when the handler is asked to stop.
#[derive(Serialize, Deserialize)]
struct Block {}

impl Task for Block {
    const NAME: &'static str = "block";
    type Output = u32;

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(1);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 })
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Hold>()]
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        let (hold, attempt) = (ctx.data::<Hold>().unwrap(), ctx.clone());
        let work = move || {
            hold.began.hit();
            let (until, mut asked) = (Instant::now() + 2 * PATIENCE, false);
            while !hold.released.load(Ordering::Relaxed) && Instant::now() < until {
                if attempt.is_cancelled() && !asked {
                    hold.asked.hit();
                    asked = true;
                }
                thread::sleep(Duration::from_millis(1));
            }
            attempt.attempt()
        };
        Ok(ctx.run_blocking(work).await)
    }
}

/// A handler that returns while its thread still runs.
#[derive(Serialize, Deserialize)]
struct GiveUp {}

impl Task for GiveUp {
    const NAME: &'static str = "give_up";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let mut block = pin!(Block {}.run(ctx.clone()));
        let began = ctx.data::<Hold>().unwrap().began;
        tokio::select! {
            returned = &mut block => returned.map(drop),
            () = began.wait_for(1) => Ok(()),
        }
    }
}

async fn runs_twenty_others(bench: &Bench) {
    for number in 0..20 {
        let double = Double { number }.call().queue("other");
        let handle = bench.client.submit(double).await.unwrap();
        assert_eq!(handle.result_within(PATIENCE).await.unwrap(), number * 2);
    }
}

on_both! {
    async fn past_its_timeout_a_blocking_handler_keeps_its_slot_until_its_thread_returns(
        bench: Bench
    ) {
        let hold = Hold::default();
        let builder = bench.worker().concurrency(1).queues(["default"]).data(hold.clone());
        let worker = bench.start(builder.task_type::<Block>().task_type::<Double>());
        let other = bench.start(bench.worker().queues(["other"]).task_type::<Double>());
        let call = Block {}.call().timeout(Duration::from_millis(200)).max_retry(3);
        let handle = bench.client.submit(call).await.unwrap();
        hold.asked.wait_for(1).await;
        let next = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        runs_twenty_others(&bench).await;
        assert_eq!((hold.began.hits(), handle.status().await.unwrap()), (1, TaskState::Working));
        assert_eq!(next.status().await.unwrap(), TaskState::Ready, "the handler keeps its slot");
        hold.release();
        assert_eq!(handle.result_within(PATIENCE).await.unwrap(), 2);
        assert_eq!(next.result_within(PATIENCE).await.unwrap(), 8);
        assert_eq!(hold.began.hits(), 2);
        worker.stop().await;
        other.stop().await;
    }

    async fn a_blocking_handler_that_returns_after_its_timeout_has_timed_out(bench: Bench) {
        let hold = Hold::default();
        let worker = bench.start(bench.worker().data(hold.clone()).task_type::<Block>());
        let call = Block {}.call().timeout(Duration::from_millis(200)).max_retry(0);
        let handle = bench.client.submit(call).await.unwrap();
        hold.asked.wait_for(1).await;
        hold.release();
        crate::common::died_of(&handle, Reason::TimedOut).await;
        worker.stop().await;
    }

    async fn a_handler_that_returns_before_its_thread_keeps_its_slot_until_that_returns(
        bench: Bench
    ) {
        let hold = Hold::default();
        let builder = bench.worker().concurrency(1).data(hold.clone());
        let worker = bench.start(builder.task_type::<GiveUp>().task_type::<Double>());
        let handle = bench.client.submit(GiveUp {}.call()).await.unwrap();
        hold.began.wait_for(1).await;
        let next = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        next.result_within(Duration::from_millis(500)).await.expect_err("no slot is idle");
        assert_eq!(handle.status().await.unwrap(), TaskState::Working);
        hold.release();
        handle.result_within(PATIENCE).await.unwrap();
        assert_eq!(next.result_within(PATIENCE).await.unwrap(), 8);
        worker.stop().await;
    }

    async fn the_result_of_a_handler_that_returned_before_its_thread_is_kept_at_a_shutdown(
        bench: Bench
    ) {
        let hold = Hold::default();
        let builder = bench.worker().shutdown_grace(Duration::ZERO).data(hold.clone());
        let worker = bench.start(builder.task_type::<GiveUp>());
        let handle = bench.client.submit(GiveUp {}.call()).await.unwrap();
        hold.began.wait_for(1).await;
        tokio::join!(worker.stop(), async {
            // The grace is over here.
            hold.asked.wait_for(1).await;
            hold.release();
        });
        assert_eq!(handle.status().await.unwrap(), TaskState::Success);
    }

    async fn a_task_whose_thread_still_runs_at_a_shutdown_starts_elsewhere_only_after_its_lease(
        bench: Bench
    ) {
        let hold = Hold::default();
        let builder = bench.worker().shutdown_grace(Duration::ZERO).data(hold.clone());
        let worker = bench.start(builder.task_type::<Block>());
        let handle = bench.client.submit(Block {}.call()).await.unwrap();
        hold.began.wait_for(1).await;
        worker.stop().await;
        assert_eq!(hold.asked.hits(), 1);
        assert_eq!(handle.status().await.unwrap(), TaskState::Working, "the thread still runs");
        let next = bench.start(bench.worker().data(hold.clone()).task_type::<Block>());
        hold.began.wait_for(2).await;
        assert_eq!(view(&bench, handle.id()).await.losses, 1);
        hold.release();
        handle.result_within(PATIENCE).await.unwrap();
        next.stop().await;
    }
}

#[test]
fn handlers_that_hang_take_no_threads_from_others() {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(2);
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::on_memory().await;
        let hold = Hold::default();
        let builder = bench.worker().concurrency(12).data(hold.clone());
        let worker = bench.start(builder.task_type::<Block>().task_type::<Double>());
        let calls = (0..10).map(|_| Block {}.call());
        bench.client.submit_all(calls).await.unwrap();
        hold.began.wait_for(10).await;
        eventually("a healthy handler runs", PATIENCE, async || {
            let handle = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
            handle.result_within(PATIENCE).await.unwrap() == 2
        })
        .await;
        hold.release();
        worker.stop().await;
    });
}
