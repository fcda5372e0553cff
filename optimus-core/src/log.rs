//! Log events that a separate thread passes to the subscriber: [`Log`].
//!
//! This module is for the other Optimus crates and is not public API. A `tracing` subscriber is
//! user code. A subscriber may panic, and it may block, for example on a pipe that no program
//! reads. So code that keeps leases, connections or locks alive does not call it, but queues its
//! events here. One thread passes them on in order. The thread ends when no events are left.

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

use crate::guarded_drop::discard;

/// The maximum number of waiting events. Further events are dropped and counted. The limit is high
/// because a turn of a worker ends thousands of attempts at once, and a subscriber that does not
/// block must receive all their events.
const WAITING_MAX: usize = 16 * 1024;
/// The maximum number of bytes of long texts in these events.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Logs one event or several.
type Entry = Box<dyn FnOnce() + Send>;

/// Passes log events to the subscriber that was the default where the log was made. Clones share
/// it.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    /// The subscriber of the thread that made the log. If that thread had none, this is `None`, and
    /// events go to the subscriber of the process.
    subscriber: Option<WeakDispatch>,
    waiting: Mutex<Waiting>,
}

/// The size of an entry.
#[derive(Clone, Copy, Default)]
struct Size {
    events: usize,
    /// Of texts that may be long.
    bytes: usize,
}

#[derive(Default)]
struct Waiting {
    /// The waiting entries, each with its size.
    entries: VecDeque<(Size, Entry)>,
    /// The sum of their sizes.
    size: Size,
    dropped: u64,
    /// Whether a thread is passing events on.
    is_served: bool,
}

/// Queues an event, in the form of `tracing::event!`, for the thread of a [`Log`](crate::log::Log).
/// Its fields are moved there.
#[doc(hidden)]
#[macro_export]
macro_rules! log_event {
    ($log:expr, target: $target:literal, $level:ident, $($event:tt)+) => {
        $log.add(::tracing::Level::$level, move || {
            ::tracing::event!(target: $target, ::tracing::Level::$level, $($event)+);
        })
    };
    ($log:expr, $level:ident, $($event:tt)+) => {
        $log.add(::tracing::Level::$level, move || {
            ::tracing::event!(::tracing::Level::$level, $($event)+);
        })
    };
}

impl Log {
    /// Makes a log for the subscriber that is the default on this thread now.
    pub fn here() -> Self {
        let subscriber =
            get_default(|here| (!here.is::<NoSubscriber>()).then(|| Dispatch::downgrade(here)));
        Self(Arc::new(Inner { subscriber, waiting: Mutex::default() }))
    }

    /// Returns whether this log has a subscriber now, at any level.
    pub fn is_heard(&self) -> bool {
        self.0.subscriber.is_some() || get_default(|here| !here.is::<NoSubscriber>())
    }

    /// Calls `event` on the thread, if this level is enabled. Its texts are short.
    pub fn add(&self, level: Level, event: impl FnOnce() + Send + 'static) {
        if level <= STATIC_MAX_LEVEL && level <= LevelFilter::current() {
            self.push(Box::new(event), Size { events: 1, bytes: 0 });
        }
    }

    /// Calls `event` for each item on the thread, in one go. The caller has checked their levels.
    /// `bytes`: of the texts that all of them keep.
    pub fn add_all<T: Send + 'static>(
        &self,
        items: Vec<T>,
        bytes: usize,
        event: impl Fn(T) + Send + 'static,
    ) {
        let events = items.len();
        self.push(Box::new(move || items.into_iter().for_each(event)), Size { events, bytes });
    }

    /// Waits until the subscriber has taken all events so far, but no longer than `within`.
    pub async fn flush(&self, within: Duration) {
        if !self.0.waiting().is_served {
            return;
        }
        let (taken, is_taken) = oneshot::channel::<()>();
        // Queued after all waiting events, even if a limit is reached.
        self.push(Box::new(move || drop(taken)), Size::default());
        drop(timeout(within, is_taken).await);
    }

    /// Queues an entry, unless too many events or bytes would wait.
    fn push(&self, entry: Entry, size: Size) {
        #[cfg(feature = "simulation")]
        if crate::platform::is_simulated() {
            // A simulation has one thread, and no subscriber blocks it.
            self.0.pass_on(entry);
            return;
        }
        let mut waiting = self.0.waiting();
        let events = waiting.size.events + size.events;
        let bytes = waiting.size.bytes + size.bytes;
        if size.events > 0 && (events > WAITING_MAX || bytes > WAITING_BYTES_MAX) {
            waiting.dropped += size.events as u64;
            return;
        }
        waiting.size = Size { events, bytes };
        waiting.entries.push_back((size, entry));
        if waiting.is_served {
            return;
        }
        let inner = self.0.clone();
        let started =
            thread::Builder::new().name("optimus-log".into()).spawn(move || inner.serve());
        waiting.is_served = started.is_ok();
        if started.is_err() {
            // The system can't start a thread now; the next event tries again.
            let lost = mem::take(&mut waiting.entries);
            waiting.dropped += mem::take(&mut waiting.size).events as u64;
            drop(waiting);
            drop(lost);
        }
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes events on until none are left.
    fn serve(&self) {
        loop {
            let (entry, dropped) = {
                let mut waiting = self.waiting();
                let dropped = mem::take(&mut waiting.dropped);
                let (size, entry) = waiting.entries.pop_front().unzip();
                let Size { events, bytes } = size.unwrap_or_default();
                waiting.size.events -= events;
                waiting.size.bytes -= bytes;
                waiting.is_served = entry.is_some() || dropped > 0;
                if !waiting.is_served {
                    return;
                }
                (entry, dropped)
            };
            if dropped > 0 {
                let report = move || {
                    tracing::warn!(
                        dropped,
                        "events were not logged, since the tracing subscriber took too long"
                    );
                };
                self.pass_on(Box::new(report));
            }
            if let Some(entry) = entry {
                self.pass_on(entry);
            }
        }
    }

    /// A panic of the subscriber loses only this entry.
    fn pass_on(&self, entry: Entry) {
        let subscriber = self.subscriber.as_ref().and_then(WeakDispatch::upgrade);
        let pass_on = || match &subscriber {
            Some(subscriber) => with_default(subscriber, entry),
            None => entry(),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(pass_on)) {
            discard(panic);
        }
        // This may be the last reference to the subscriber.
        discard(subscriber);
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
