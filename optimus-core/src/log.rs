//! Log events, on a thread of their own: [`Log`].
//!
//! For the other Optimus crates; nothing here is public API. A subscriber of `tracing` is code of
//! the user's. It may panic, and it may block: a pipe that nobody reads. So whoever keeps leases,
//! connections or locks does not call it, but leaves its events here. One thread passes them on in
//! their order, and lives while there are any.

use std::{
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};
pub use tracing::Level;
use tracing::{
    dispatcher::{Dispatch, WeakDispatch, get_default, with_default},
    level_filters::{LevelFilter, STATIC_MAX_LEVEL},
    subscriber::NoSubscriber,
};

use crate::discard::discard;

/// Events that wait. Where a subscriber takes none, more are dropped and counted.
const WAITING_MAX: usize = 1024;

type Event = Box<dyn FnOnce() + Send>;

/// Passes log events on to the subscriber that was the default where it was made. Clones share it.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    /// If the thread that made it had one. Else each event goes to that of the process.
    subscriber: Option<WeakDispatch>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    dropped: u64,
    /// A thread passes them on.
    is_served: bool,
}

/// Leaves an event, as `tracing::event!` takes it, to the thread of a [`Log`](crate::log::Log).
/// Its fields are moved there.
#[doc(hidden)]
#[macro_export]
macro_rules! tell {
    ($log:expr, target: $target:literal, $level:ident, $($event:tt)+) => {
        $log.tell(::tracing::Level::$level, move || {
            ::tracing::event!(target: $target, ::tracing::Level::$level, $($event)+);
        })
    };
    ($log:expr, $level:ident, $($event:tt)+) => {
        $log.tell(::tracing::Level::$level, move || {
            ::tracing::event!(::tracing::Level::$level, $($event)+);
        })
    };
}

impl Log {
    /// For the subscriber that is the default on this thread now.
    pub fn here() -> Self {
        let subscriber =
            get_default(|here| (!here.is::<NoSubscriber>()).then(|| Dispatch::downgrade(here)));
        Self(Arc::new(Inner { subscriber, waiting: Mutex::default() }))
    }

    /// Whether a subscriber hears of its events now, of whichever level.
    pub fn is_heard(&self) -> bool {
        self.0.subscriber.is_some() || get_default(|here| !here.is::<NoSubscriber>())
    }

    /// Has `event` called on the thread, if anybody listens to this level.
    pub fn tell(&self, level: Level, event: impl FnOnce() + Send + 'static) {
        if level <= STATIC_MAX_LEVEL && level <= LevelFilter::current() {
            self.push(Box::new(event), WAITING_MAX);
        }
    }

    /// Waits until the subscriber has taken what was told so far, but no longer than `within`.
    pub async fn flush(&self, within: Duration) {
        if !self.0.waiting().is_served {
            return;
        }
        let (taken, is_taken) = oneshot::channel::<()>();
        // It comes after all that waits, however much that is.
        self.push(Box::new(move || drop(taken)), usize::MAX);
        drop(timeout(within, is_taken).await);
    }

    fn push(&self, event: Event, max: usize) {
        #[cfg(feature = "simulation")]
        if crate::platform::is_simulated() {
            // There one thread does all, and no subscriber blocks it.
            self.0.pass_on(event);
            return;
        }
        let mut waiting = self.0.waiting();
        if waiting.events.len() >= max {
            waiting.dropped += 1;
            return;
        }
        waiting.events.push_back(event);
        if waiting.is_served {
            return;
        }
        let inner = self.0.clone();
        let started =
            thread::Builder::new().name("optimus-log".into()).spawn(move || inner.serve());
        waiting.is_served = started.is_ok();
        if started.is_err() {
            // The machine gives no thread now; the next event asks again.
            let lost = mem::take(&mut waiting.events);
            waiting.dropped += lost.len() as u64;
            drop(waiting);
            drop(lost);
        }
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until nothing waits.
    fn serve(&self) {
        loop {
            let (event, dropped) = {
                let mut waiting = self.waiting();
                let dropped = mem::take(&mut waiting.dropped);
                let event = waiting.events.pop_front();
                waiting.is_served = event.is_some() || dropped > 0;
                if !waiting.is_served {
                    return;
                }
                (event, dropped)
            };
            if dropped > 0 {
                let told = move || {
                    tracing::warn!(
                        dropped,
                        "events were not logged, since the tracing subscriber took too long"
                    );
                };
                self.pass_on(Box::new(told));
            }
            if let Some(event) = event {
                self.pass_on(event);
            }
        }
    }

    /// A panic of the subscriber costs its event alone.
    fn pass_on(&self, event: Event) {
        let subscriber = self.subscriber.as_ref().and_then(WeakDispatch::upgrade);
        let pass_on = || match &subscriber {
            Some(subscriber) => with_default(subscriber, event),
            None => event(),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(pass_on)) {
            discard(panic);
        }
        // It may be the last to have the subscriber.
        discard(subscriber);
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
