//! Errors with which a handler decides what happens to its task, even if they are inside other
//! errors.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, Running};
use optimus_core::{
    BoxError, Cancel, CancelAnswer, Context, DataKey, Fatal, Reason, Retry, Snooze, Task,
    TaskDetails, TaskHandle, TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
#[error("on the way up")]
struct Wrapped(#[source] BoxError);

/// A task that returns its control word in its first run. A second run succeeds.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
enum Obey {
    Retry { ms: u64 },
    Fatal,
    Snooze { ms: u64 },
    Cancel,
}

#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Task for Obey {
    const NAME: &'static str = "obey";
    type Output = u32;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Runs>()]
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        let runs: Runs = ctx.data().unwrap();
        if runs.0.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(ctx.attempt());
        }
        let word: BoxError = match self {
            Self::Retry { ms } => Retry::after(Duration::from_millis(ms)).because("busy").into(),
            Self::Fatal => Fatal::new("hopeless").into(),
            Self::Snooze { ms } => Snooze::new(Duration::from_millis(ms)).into(),
            Self::Cancel => Cancel.into(),
        };
        Err(Wrapped(Box::new(Wrapped(word))).into())
    }
}

/// Submits the task to a separate worker.
async fn submit(bench: &Bench, word: Obey, max_retry: u32) -> (TaskHandle<u32>, Running) {
    let builder = bench.worker().task_type::<Obey>().task_type::<Double>().data(Runs::default());
    let worker = bench.start(builder);
    (bench.client.submit(word.call().max_retry(max_retry)).await.unwrap(), worker)
}

async fn view(bench: &Bench, handle: &TaskHandle<u32>) -> TaskDetails {
    bench.client.inspector().get(handle.id()).await.unwrap().expect("the task is known")
}

async fn reaches(bench: &Bench, handle: &TaskHandle<u32>, state: TaskState) -> TaskDetails {
    let reached = async || view(bench, handle).await.state == state;
    eventually(&format!("the task is {state}"), SOON, reached).await;
    view(bench, handle).await
}

/// Snoozes until its task is old.
#[derive(Serialize, Deserialize)]
struct GivesUp {}

impl Task for GivesUp {
    const NAME: &'static str = "gives_up";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let age = ctx.age().expect("the id has the time of the submit");
        if age < Duration::from_millis(350) {
            return Err(Snooze::new(Duration::from_millis(100)).into());
        }
        Err(Fatal::new("too old").into())
    }
}

on_both! {
    async fn retry_waits_as_long_as_it_asks_for_and_spends_a_retry(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Retry { ms: 300 }, 1).await;
        let task = reaches(&bench, &handle, TaskState::Retry).await;
        assert_eq!((task.failures, task.errors.len()), (1, 1));
        assert!(task.at.unwrap() >= task.errors[0].at + Duration::from_millis(300));
        let text = &task.errors[0].message;
        assert!(text.contains("on the way up") && text.contains("busy"), "{text}");
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2, "the task ran twice");
        worker.stop().await;
    }

    async fn retry_without_a_retry_left_is_dead(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Retry { ms: 1 }, 0).await;
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert_eq!(problem.attempt_error().unwrap().reason, Reason::Failed, "{problem}");
        worker.stop().await;
    }

    async fn fatal_is_dead_at_once_with_retries_left(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Fatal, 9).await;
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead() && problem.to_string().contains("hopeless"), "{problem}");
        assert_eq!(view(&bench, &handle).await.failures, 1);
        worker.stop().await;
    }

    async fn snooze_runs_again_later_and_spends_nothing(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Snooze { ms: 300 }, 0).await;
        let task = reaches(&bench, &handle, TaskState::Delayed).await;
        assert_eq!((task.failures, task.misfits, task.errors.len()), (0, 0, 0));
        assert_eq!(handle.result_within(SOON).await.unwrap(), 1, "still the first attempt");
        worker.stop().await;
    }

    async fn a_handler_that_snoozes_can_give_up_by_the_age_of_its_task(bench: Bench) {
        let handle = bench.client.submit(GivesUp {}.call()).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<GivesUp>());
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead() && problem.to_string().contains("too old"), "{problem}");
        worker.stop().await;
    }

    async fn a_snoozed_task_can_be_cancelled(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Snooze { ms: 60_000 }, 0).await;
        reaches(&bench, &handle, TaskState::Delayed).await;
        assert_eq!(handle.cancel().await.unwrap(), CancelAnswer::Cancelled);
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        worker.stop().await;
    }

    async fn cancel_ends_cancelled_and_not_dead(bench: Bench) {
        let (handle, worker) = submit(&bench, Obey::Cancel, 9).await;
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        assert_eq!(view(&bench, &handle).await.state, TaskState::Cancelled);
        worker.stop().await;
    }

    async fn waits_without_end_harm_no_other_task_of_the_queue(bench: Bench) {
        for word in [Obey::Retry { ms: u64::MAX }, Obey::Snooze { ms: u64::MAX }] {
            let (handle, worker) = submit(&bench, word, 9).await;
            let waits = async || view(&bench, &handle).await.state != TaskState::Ready;
            eventually("the task has begun", SOON, waits).await;
            let begun = Instant::now();
            for _ in 0..20 {
                let other = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
                assert_eq!(other.result_within(SOON).await.unwrap(), 2);
            }
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(2), "20 tasks after {word:?} took {took:?}");
            worker.stop().await;
        }
    }
}
