//! The extent of the measurements: the full counts, or a small part for a smoke test.

/// The number of runs, and the divisor of the full counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The number of repetitions of each measurement.
    pub(crate) runs: usize,
    /// The divisor of all counts.
    divisor: u64,
}

/// The smallest count. With less, a batch of each kind would not be full.
const TASKS_MIN: u64 = 1_000;

impl Scale {
    /// Three runs of the full counts.
    pub(crate) const FULL: Self = Self { runs: 3, divisor: 1 };
    /// One run of a fortieth of the counts.
    pub(crate) const QUICK: Self = Self { runs: 1, divisor: 40 };

    /// Returns whether this is only a smoke test.
    pub(crate) fn is_quick(self) -> bool {
        self.divisor > 1
    }

    /// Returns the number of tasks, if a full run has `full`.
    pub(crate) fn tasks(self, full: u64) -> u64 {
        (full / self.divisor).max(TASKS_MIN.min(full))
    }

    /// Returns one of two values, for counts that can't be divided.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        if self.is_quick() { quick } else { full }
    }
}
