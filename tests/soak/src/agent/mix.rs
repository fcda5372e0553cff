//! The mix of tasks. A task's number determines its kind, so that every process knows it.

/// One in this many tasks has a kind that leaves a record.
const RARE: u64 = 4;

/// The behaviour of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The handler returns at once.
    Nothing,
    /// The handler waits a few ms.
    Short,
    /// The handler waits a second or two.
    Long,
    /// The handler fails in the first one or two attempts.
    Flaky,
    /// The handler panics in its first attempt.
    Panicking,
    /// The handler fails in every attempt.
    Doomed,
    /// The handler returns its fence as a kept result.
    Answering,
    /// The handler blocks its thread for a while.
    Blocking,
    /// The handler keeps its thread busy for a while.
    Spinning,
    /// The handler runs beyond its timeout on a separate thread, in every attempt.
    Overrunning,
    /// The task has a biz id that other tasks also have.
    Unique,
    /// The task runs some time after its submit.
    Delayed,
    /// The task runs so late that there is time to cancel it.
    Cancelled,
}

impl Kind {
    /// Returns the kind of the task with this number.
    pub(crate) fn of(number: u64) -> Self {
        match number % 32 {
            // These tasks are so few that none is purged, because a queue keeps 10,000 of them.
            21 | 31 if !(number / 32).is_multiple_of(RARE) => Self::Short,
            0..8 => Self::Nothing,
            16 => match number / 32 % 32 {
                0 => Self::Overrunning,
                1..3 => Self::Blocking,
                3 => Self::Spinning,
                _ => Self::Short,
            },
            8..16 => Self::Short,
            17 => Self::Long,
            18..20 => Self::Flaky,
            20 => Self::Panicking,
            21 => Self::Doomed,
            22..26 => Self::Answering,
            26..28 => Self::Unique,
            28..31 => Self::Delayed,
            _ => Self::Cancelled,
        }
    }

    /// Returns the biz id of the task with this number. There are sixteen biz ids, each for many
    /// tasks.
    pub(crate) fn biz(self, number: u64) -> Option<u64> {
        (self == Self::Unique).then_some(number / 64 % 16)
    }

    /// Returns how long the handler of the task waits.
    pub(crate) fn wait_ms(self, number: u64) -> u64 {
        let turn = number / 32;
        match self {
            Self::Short => 1 + turn % 40,
            Self::Long => 500 + turn % 1_500,
            // The time is short, so that a worker with every thread blocked does not report late.
            Self::Blocking => 50 + turn % 350,
            Self::Spinning => 20 + turn % 100,
            Self::Overrunning => 700 + turn % 500,
            // Some times are long enough for a worker to lose its lease during the wait.
            Self::Answering if turn.is_multiple_of(2) => 300 + turn % 1_000,
            _ => 0,
        }
    }

    /// Returns how long after its submit the task is due.
    pub(crate) fn delay_ms(self, number: u64) -> u64 {
        match self {
            Self::Delayed => 20 + number / 32 * 37 % 1_500,
            Self::Cancelled => 3_000,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_exists_and_few_leave_a_record() {
        let count = |kind| (0..1_000_000).filter(|number| Kind::of(*number) == kind).count();
        for kind in [Kind::Nothing, Kind::Long, Kind::Flaky, Kind::Panicking, Kind::Unique] {
            assert!(count(kind) > 10_000, "{kind:?}");
        }
        for kind in [Kind::Blocking, Kind::Spinning, Kind::Overrunning] {
            assert!(count(kind) > 900, "{kind:?}");
        }
        assert!(count(Kind::Doomed) + count(Kind::Overrunning) < 10_000);
        assert!(count(Kind::Cancelled) < 10_000);
        assert!((0..1_000).any(|number| Kind::of(number) == Kind::Doomed));
    }
}
