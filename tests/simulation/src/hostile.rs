//! Tasks whose code panics outside the handler, where the worker calls it: [`Hostile`].

use std::error::Error;
use std::fmt;
use std::panic::panic_any;
use std::thread;
use std::time::Duration;

use optimus_core::{
    AttemptError, Backoff, BoxError, Call, Context, Reason, Task, TaskDetails, TaskOptions,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::queues::QUEUE;
use crate::tasks::{LOSSES_MAX, PANIC, Run};

/// The timeout after which a future that never ends is dropped.
const TIMEOUT: Duration = Duration::from_millis(300);

/// The place of the panic.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Place {
    /// The task panics when its error is formatted.
    ErrorText,
    /// The task panics when its error is dropped.
    ErrorDrop,
    /// The task panics, and so does the drop of its panic payload.
    PanicDrop,
    /// The task panics when its future is dropped.
    FutureDrop,
    /// The task panics when its return value is dropped.
    OutputDrop,
    /// The back-off of the task panics.
    Backoff,
    /// The task panics when a value of the worker is cloned for it.
    DataClone,
}

/// The error of a hostile task.
const ASKED: &str = "asked to fail";

impl Place {
    /// All places.
    pub const ALL: [Self; 7] = [
        Self::ErrorText,
        Self::ErrorDrop,
        Self::PanicDrop,
        Self::FutureDrop,
        Self::OutputDrop,
        Self::Backoff,
        Self::DataClone,
    ];

    /// Returns the recorded reason and text of an attempt that panics in that place.
    fn recorded(self) -> (Reason, &'static str) {
        match self {
            Self::ErrorText => (Reason::Failed, "(the text of the error panicked: asked to panic)"),
            Self::ErrorDrop | Self::Backoff => (Reason::Failed, ASKED),
            Self::PanicDrop => (Reason::Panicked, "a panic with a payload that is not a string"),
            Self::FutureDrop => (Reason::TimedOut, "still running"),
            Self::OutputDrop | Self::DataClone => (Reason::Panicked, PANIC),
        }
    }
}

/// Returns the problem in the error history of a dead hostile task. Each attempt must have the
/// reason of its place, unless its worker was lost.
pub(crate) fn misrecorded(task: &TaskDetails) -> Option<String> {
    let Some(Ok(record)) = task.record.as_ref() else { return None };
    if record.task != Hostile::NAME {
        return None;
    }
    // The arguments of the task are JSON, which contains the name of the place.
    let arguments = String::from_utf8_lossy(&record.payload);
    let named = |place: &Place| arguments.contains(&format!("\"{place:?}\""));
    let place = Place::ALL.into_iter().find(named)?;
    let (reason, text) = place.recorded();
    let is_other = |error: &&AttemptError| {
        let is_its = error.reason == reason && error.message.contains(text);
        !is_its && !matches!(error.reason, Reason::Lost | Reason::Unreported)
    };
    let other = task.errors.iter().find(is_other)?;
    Some(format!("{} panics in its {place:?}, and is recorded as {other:?}", task.id))
}

/// A task that panics at this place in each attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hostile {
    /// The number of the task in the history.
    pub number: u64,
    /// The place of the panic.
    pub place: Place,
}

impl Hostile {
    /// Returns a call of a hostile task that ends soon.
    pub fn new(number: u64, place: Place) -> Call<Self> {
        Self { number, place }.call().timeout(TIMEOUT).max_retry(1)
    }
}

impl Task for Hostile {
    const NAME: &'static str = "hostile";
    type Output = Bomb;

    fn options() -> TaskOptions {
        let options = TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX);
        options.backoff(Backoff::Custom(panics_or_soon))
    }

    async fn run(self, ctx: Context) -> Result<Bomb, BoxError> {
        let (run, place) = (Run::begin(self.number, &ctx), self.place);
        match place {
            Place::ErrorText | Place::Backoff => run.fail(BadError { place, _bomb: None }),
            Place::ErrorDrop => run.fail(BadError { place, _bomb: Some(Bomb) }),
            Place::PanicDrop => {
                let _run = run.failed();
                panic_any(Bomb)
            }
            Place::FutureDrop => {
                let _bomb = Bomb;
                run.hang().await;
                Ok(Bomb)
            }
            Place::OutputDrop => {
                drop(run.failed());
                Ok(Bomb)
            }
            Place::DataClone => {
                let _run = run.failed();
                ctx.data::<Unclonable>().map(|_| Bomb).ok_or_else(|| "no data".into())
            }
        }
    }
}

fn panics_or_soon(_: u32, error: &(dyn Error + 'static)) -> Duration {
    match error.downcast_ref() {
        Some(BadError { place: Place::Backoff, .. }) => panic_any(PANIC),
        _ => Duration::from_millis(50),
    }
}

#[derive(Debug)]
struct BadError {
    place: Place,
    _bomb: Option<Bomb>,
}

impl fmt::Display for BadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::ErrorText => panic_any(PANIC),
            _ => f.write_str(ASKED),
        }
    }
}

impl Error for BadError {}

/// Panics when it is dropped, except during a panic, because a second panic would end the process.
#[derive(Debug)]
pub struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic_any(PANIC);
        }
    }
}

impl Serialize for Bomb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(0)
    }
}

impl<'de> Deserialize<'de> for Bomb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(|_| Self)
    }
}

/// A value of the worker that panics when it is cloned.
pub(crate) struct Unclonable;

impl Clone for Unclonable {
    fn clone(&self) -> Self {
        panic_any(PANIC)
    }
}
