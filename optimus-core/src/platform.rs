//! The services that a process needs from its machine: the time of day, a host name, unique ids,
//! and a yield to other tasks.
//!
//! This module is for the other Optimus crates and is not public API. With the feature `simulation`
//! a thread can take all of them from a clock and a seed, so that its run can be repeated exactly.

use std::{
    cell::Cell,
    future::poll_fn,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Utc};
use uuid::Uuid;

#[cfg(feature = "simulation")]
pub use simulated::{is_simulated, simulate};

/// Returns the time of day.
pub fn now() -> SystemTime {
    #[cfg(feature = "simulation")]
    if let Some(now) = simulated::now() {
        return now;
    }
    SystemTime::now()
}

/// Returns the time of day in ms since the Unix epoch.
pub fn now_ms() -> u64 {
    let since_epoch = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time that is so many ms after the Unix epoch.
pub fn instant(ms: u64) -> DateTime<Utc> {
    let known = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    known.unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Returns a new, time-ordered uuid (version 7).
pub fn new_uuid() -> Uuid {
    #[cfg(feature = "simulation")]
    if let Some(uuid) = simulated::new_uuid() {
        return uuid;
    }
    salted(Uuid::now_v7(), salt())
}

/// Separates the ids of this process from those of another that was forked from the same parent. It
/// is drawn from the operating system once per process, because `fork` copies the random state of
/// threads.
pub fn salt() -> u32 {
    #[cfg(feature = "simulation")]
    if is_simulated() {
        return 0;
    }
    GIVEN.get().unwrap_or_else(|| SALT.of(own_number(), drawn))
}

/// Runs `make`, which makes many ids, with one salt of the process. Reading the process number is a
/// system call, which takes longer than the other steps of making an id.
pub fn with_salt<R>(salt: u32, make: impl FnOnce() -> R) -> R {
    struct Before(Option<u32>);
    impl Drop for Before {
        fn drop(&mut self) {
            GIVEN.set(self.0);
        }
    }
    // Restored even if the user code panics.
    let _before = Before(GIVEN.replace(Some(salt)));
    make()
}

static SALT: Salt = Salt(AtomicU64::new(0));

thread_local! {
    static GIVEN: Cell<Option<u32>> = const { Cell::new(None) };
}

fn own_number() -> u32 {
    #[cfg(test)]
    tests::ASKED.set(tests::ASKED.get() + 1);
    std::process::id()
}

/// The number of a process in the high half, and the salt that was drawn for that process in the
/// low half.
struct Salt(AtomicU64);

impl Salt {
    /// Returns the salt that was drawn for the process with this number. Another process draws its
    /// own.
    fn of(&self, process: u32, draw: impl FnOnce() -> u32) -> u32 {
        let stored = self.0.load(Ordering::Relaxed);
        // No process has the number 0.
        if stored >> 32 == u64::from(process) {
            return (stored & 0xffff_ffff) as u32;
        }
        let salt = draw();
        self.0.store(u64::from(process) << 32 | u64::from(salt), Ordering::Relaxed);
        salt
    }
}

fn drawn() -> u32 {
    getrandom::u32().expect("the operating system has random numbers, which each new thread needs")
}

/// The order of ids within a ms is in the bits above these 32 random bits.
fn salted(uuid: Uuid, salt: u32) -> Uuid {
    Uuid::from_u128(uuid.as_u128() ^ u128::from(salt))
}

/// Returns the host name of the machine.
pub fn host() -> String {
    #[cfg(feature = "simulation")]
    if is_simulated() {
        return "simulated".to_owned();
    }
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// Returns the id of the process.
pub fn process_id() -> u32 {
    #[cfg(feature = "simulation")]
    if is_simulated() {
        return 1;
    }
    std::process::id()
}

/// Lets other tasks of this thread run first.
///
/// tokio's own `yield_now` wakes the task only after this thread has run its other tasks, and one
/// of them may block the thread. This function puts the task into the queue at once, where any idle
/// thread of the runtime can take it.
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

    /// Sets the time of day of this thread, and the seed of all its random numbers.
    pub fn simulate(seed: u64, time_of_day: impl Fn() -> SystemTime + 'static) {
        fastrand::seed(seed);
        TIME_OF_DAY.set(Some(Box::new(time_of_day)));
    }

    /// Returns whether this thread is part of a simulation.
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

#[cfg(test)]
mod tests {
    use super::*;
    thread_local! {
        /// How often this thread has read the id of the process.
        pub(super) static ASKED: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn a_forked_process_makes_different_ids_from_the_same_random_numbers() {
        let (salt, random) = (Salt(AtomicU64::new(0)), Uuid::now_v7());
        let id = |process, drawn| salted(random, salt.of(process, || drawn));
        let parent = id(10, 0xfeed_0001);
        assert_eq!(parent, id(10, 0xfeed_0002), "drawn once");
        let child = id(11, 0xfeed_0003);
        assert_ne!(parent, child);
        assert_eq!(parent.as_u128() >> 32, child.as_u128() >> 32);
        assert_eq!(child, id(11, 0xfeed_0004));
    }

    #[test]
    fn ids_are_in_the_order_in_which_they_were_made_and_salted() {
        let ids: Vec<Uuid> = (0..10_000).map(|_| new_uuid()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.get_version_num() == 7));
        assert_eq!(salt(), salt());
        assert_eq!(SALT.0.load(Ordering::Relaxed) >> 32, u64::from(std::process::id()));
    }

    #[test]
    fn with_a_salt_the_process_id_is_not_read_until_the_closure_ends_or_panics() {
        let asked = || ASKED.get();
        let (salt, before) = (salt(), asked());
        with_salt(salt, || (0..1_000).for_each(|_| assert!(!new_uuid().is_nil())));
        let made = std::panic::catch_unwind(|| with_salt(salt, || panic!("within user code")));
        assert!(made.is_err() && asked() == before);
        new_uuid();
        assert_eq!(asked(), before + 1);
    }

    #[cfg(feature = "embedded")]
    #[tokio::test]
    async fn a_submit_of_many_tasks_reads_the_process_id_once() {
        use crate::Task as _;

        #[derive(serde::Serialize, serde::Deserialize)]
        struct Small {}

        impl crate::Task for Small {
            const NAME: &'static str = "small";
            type Output = ();

            async fn run(self, _: crate::Context) -> Result<(), crate::BoxError> {
                Ok(())
            }
        }

        let client = crate::Client::connect("memory://asked").await.unwrap();
        let before = ASKED.get();
        let handles = client.submit_all((0..1_000).map(|_| Small {}.call())).await;
        assert_eq!(handles.map_err(|problem| problem.first).unwrap().len(), 1_000);
        assert_eq!(ASKED.get(), before + 1);
    }
}
