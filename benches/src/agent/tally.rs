//! The executed tasks, with one bit for each number, and their delays.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::protocol::Tallied;

/// The tally is a static and not `#[data]`, so that the results do not include the cost of
/// `#[data]`.
static TALLY: OnceLock<Tally> = OnceLock::new();

const BITS: u64 = 64;

pub(super) struct Tally {
    words: Vec<AtomicU64>,
    doubled: AtomicU64,
    latencies_us: Mutex<Vec<f64>>,
}

impl Tally {
    /// Makes room for numbers below this one.
    pub(super) fn prepare(numbers: u64) {
        let words = numbers.div_ceil(BITS);
        TALLY.get_or_init(|| Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            doubled: AtomicU64::new(0),
            latencies_us: Mutex::default(),
        });
    }

    pub(super) fn get() -> &'static Self {
        TALLY.get().expect("the tally is prepared before the worker starts")
    }

    /// Counts an execution.
    pub(super) fn count(&self, number: u64) {
        let bit = 1 << (number % BITS);
        let word = usize::try_from(number / BITS).ok().and_then(|index| self.words.get(index));
        let before = word.map(|word| word.fetch_or(bit, Ordering::Relaxed));
        // An unknown number is as wrong as a second execution.
        if before.is_none_or(|before| before & bit != 0) {
            self.doubled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an execution, and its delay after this time.
    pub(super) fn count_since(&self, number: u64, instant_us: u64) {
        let late = now().saturating_sub(Duration::from_micros(instant_us));
        let mut latencies = self.latencies_us.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.push(late.as_secs_f64() * 1e6);
        drop(latencies);
        self.count(number);
    }

    pub(super) fn executed(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    pub(super) fn tallied(&self) -> Tallied {
        Tallied {
            words: self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect(),
            doubled: self.doubled.load(Ordering::Relaxed),
            latencies_us: self.latencies_us.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Returns the time since the Unix epoch, by the clock that all processes of a machine share.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
