//! User code that panics, or never returns, in each place where the worker calls it.

use std::{error::Error, fmt, future::pending, panic::panic_any, time::Duration};

use crate::common::{Bench, Double, died_of, view};
use optimus_core::{Backoff, BoxError, Context, Reason, Task, TaskOptions, TaskState};
use optimus_testkit::{Hold, eventually};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(20);

/// Panics when it is dropped.
#[derive(Debug, Serialize, Deserialize)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb was dropped");
    }
}

/// Panics when it is cloned.
struct Unclonable;

impl Clone for Unclonable {
    fn clone(&self) -> Self {
        panic!("the value was cloned");
    }
}

/// The place where user code panics.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Place {
    ErrorText,
    ErrorSource,
    ErrorDrop,
    PanicDrop,
    FutureDrop,
    ValueDrop,
    DataClone,
}

#[derive(Debug)]
struct BadError {
    place: Place,
    _bomb: Option<Bomb>,
}

impl fmt::Display for BadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half a text, ")?;
        assert!(!matches!(self.place, Place::ErrorText), "no text");
        Ok(())
    }
}

impl Error for BadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        assert!(!matches!(self.place, Place::ErrorSource), "no source");
        None
    }
}

#[derive(Serialize, Deserialize)]
struct Panics {
    place: Place,
}

impl Task for Panics {
    const NAME: &'static str = "panics";
    type Output = Bomb;

    async fn run(self, ctx: Context) -> Result<Bomb, BoxError> {
        let place = self.place;
        match place {
            Place::ErrorText | Place::ErrorSource => Err(BadError { place, _bomb: None }.into()),
            Place::ErrorDrop => Err(BadError { place, _bomb: Some(Bomb) }.into()),
            Place::PanicDrop => panic_any(Bomb),
            Place::FutureDrop => {
                let _bomb = Bomb;
                pending().await
            }
            Place::ValueDrop => Ok(Bomb),
            Place::DataClone => ctx.data::<Unclonable>().map(|_| Bomb).ok_or("no data".into()),
        }
    }
}

/// An error for which the back-off function waits.
#[derive(Debug, Clone, thiserror::Error)]
#[error("hold on")]
struct Held(Hold);

fn formula(_: u32, error: &(dyn Error + 'static)) -> Duration {
    let Some(Held(hold)) = error.downcast_ref() else { panic!("no wait for {error}") };
    hold.keep_thread();
    Duration::ZERO
}

/// Fails. Its back-off panics, or waits until it is released.
#[derive(Serialize, Deserialize)]
struct Fails {
    holds: bool,
}

impl Task for Fails {
    const NAME: &'static str = "fails";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().backoff(Backoff::Custom(formula))
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        Err(if self.holds { ctx.data::<Held>().unwrap().into() } else { "boom".into() })
    }
}

async fn ends_in_retry(bench: &Bench, task: Fails, reason: Reason) {
    let call = task.call().timeout(Duration::from_millis(500));
    let handle = bench.client.submit(call).await.unwrap();
    eventually("the task is in retry", PATIENCE, async || {
        handle.status().await.unwrap() == TaskState::Retry
    })
    .await;
    assert_eq!(view(bench, handle.id()).await.errors[0].reason, reason);
}

async fn runs_others(bench: &Bench) {
    let handle = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
    assert_eq!(handle.result_within(PATIENCE).await.unwrap(), 8);
}

on_both! {
    async fn user_code_that_panics_ends_its_own_attempt_and_frees_the_slot(bench: Bench) {
        let builder = bench.worker().concurrency(1).data(Unclonable);
        let worker = bench.start(builder.task_type::<Panics>().task_type::<Double>());
        for (place, reason) in [
            (Place::ErrorText, Reason::Failed),
            (Place::ErrorSource, Reason::Failed),
            (Place::ErrorDrop, Reason::Failed),
            (Place::PanicDrop, Reason::Panicked),
            (Place::FutureDrop, Reason::TimedOut),
            (Place::ValueDrop, Reason::Panicked),
            (Place::DataClone, Reason::Panicked),
        ] {
            let call = Panics { place }.call().max_retry(0).timeout(Duration::from_millis(500));
            let handle = bench.client.submit(call).await.unwrap();
            died_of(&handle, reason).await;
            runs_others(&bench).await;
        }
        worker.stop().await;
    }

    async fn a_back_off_that_panics_is_replaced(bench: Bench) {
        let worker = bench.worker().concurrency(1).task_type::<Fails>().task_type::<Double>();
        let worker = bench.start(worker);
        ends_in_retry(&bench, Fails { holds: false }, Reason::Failed).await;
        runs_others(&bench).await;
        worker.stop().await;
    }

    async fn a_back_off_that_never_returns_delays_no_other_and_ends_at_the_deadline(bench: Bench) {
        let hold = Hold::new();
        let builder = bench.worker().concurrency(2).data(Held(hold.clone()));
        let worker = bench.start(builder.task_type::<Fails>().task_type::<Double>());
        ends_in_retry(&bench, Fails { holds: true }, Reason::TimedOut).await;
        runs_others(&bench).await;
        hold.release();
        worker.stop().await;
    }
}
