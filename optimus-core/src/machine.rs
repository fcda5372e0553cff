//! What a process takes from its machine: the time of day, a name, ids that nobody else has, and
//! turns on its threads.
//!
//! For the other Optimus crates; nothing here is public API. With the feature `simulation` a
//! thread can be told to take all of them from a clock and a seed, so that whatever it runs can be
//! repeated exactly.

use std::{
    future::poll_fn,
    task::Poll,
    time::{SystemTime, UNIX_EPOCH},
};

use uuid::Uuid;

#[cfg(feature = "simulation")]
pub use simulated::{is_simulated, simulate};

/// The time of day.
pub fn now() -> SystemTime {
    #[cfg(feature = "simulation")]
    if let Some(now) = simulated::now() {
        return now;
    }
    SystemTime::now()
}

/// The time of day in ms since the Unix epoch.
pub fn now_ms() -> u64 {
    let since_epoch = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// A fresh, time-ordered uuid (version 7).
pub fn new_uuid() -> Uuid {
    #[cfg(feature = "simulation")]
    if let Some(uuid) = simulated::new_uuid() {
        return uuid;
    }
    Uuid::now_v7()
}

/// The machine's name.
pub fn host() -> String {
    #[cfg(feature = "simulation")]
    if is_simulated() {
        return "simulated".to_owned();
    }
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// The process' number.
pub fn process_id() -> u32 {
    #[cfg(feature = "simulation")]
    if is_simulated() {
        return 1;
    }
    std::process::id()
}

/// Lets other tasks of this thread run first.
///
/// tokio's own `yield_now` wakes the task only after this thread has run its other tasks. One of
/// them may block the thread. This one puts the task into the queue at once, where any idle thread
/// of the runtime can take it.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::{
        cell::RefCell,
        time::{SystemTime, UNIX_EPOCH},
    };

    use uuid::{Builder, Uuid};

    type Source = Box<dyn Fn() -> SystemTime>;

    thread_local! {
        static TIME_OF_DAY: RefCell<Option<Source>> = const { RefCell::new(None) };
    }

    /// From here on this thread has that time of day, and all its random numbers are of the seed.
    pub fn simulate(seed: u64, time_of_day: impl Fn() -> SystemTime + 'static) {
        fastrand::seed(seed);
        TIME_OF_DAY.set(Some(Box::new(time_of_day)));
    }

    /// Whether this thread is in a simulation.
    pub fn is_simulated() -> bool {
        TIME_OF_DAY.with_borrow(Option::is_some)
    }

    pub(super) fn now() -> Option<SystemTime> {
        TIME_OF_DAY.with_borrow(|source| source.as_ref().map(|now| now()))
    }

    pub(super) fn new_uuid() -> Option<Uuid> {
        let since_epoch = now()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        let random: u128 = fastrand::u128(..);
        let bytes = std::array::from_fn(|at| random.to_le_bytes()[at]);
        Some(Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid())
    }
}
