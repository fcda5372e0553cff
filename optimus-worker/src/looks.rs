//! When a worker looks at a queue though nothing woke it.

use std::time::Duration;

use optimus_core::interval;

/// A worker that waits for a due time claims by then, unless it is gone.
const BACKUP_AFTER: Duration = Duration::from_millis(250);
const BACKUP_EACH: Duration = Duration::from_millis(100);
/// However many workers share the looks, each does as if they were so many at most: the others may
/// be ending, or their runtimes blocked.
const POLLS_APART_MAX: usize = 12;

/// How much later than the worker that waits for a due time each of so many others looks, in case
/// that one is gone: one of them soon, and all of them together a few times a second.
pub(crate) fn backup_wait(workers: usize) -> Duration {
    let others = u32::try_from(workers).unwrap_or(u32::MAX);
    BACKUP_AFTER + BACKUP_EACH.saturating_mul(others).mul_f64(fastrand::f64())
}

/// How long a worker waits between its looks: the workers of a queue together look once a poll.
pub(crate) fn look_wait(poll: Duration, workers: usize) -> Duration {
    interval(poll, workers.min(POLLS_APART_MAX), fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    #[test]
    fn the_workers_of_a_queue_share_its_looks() {
        for _ in 0..1_000 {
            let (alone, of_four) = (look_wait(POLL, 1), look_wait(POLL, 4));
            assert!(alone >= POLL / 2 && alone <= POLL + POLL / 2, "{alone:?}");
            assert!(of_four >= POLL * 2 && of_four <= POLL * 6, "{of_four:?}");
        }
    }

    #[test]
    fn a_worker_looks_each_twelve_polls_however_many_others_there_are() {
        for _ in 0..1_000 {
            let wait = look_wait(POLL, 1_000_000);
            assert!(wait >= POLL * 6 && wait <= POLL * 18, "{wait:?}");
        }
        assert!(look_wait(Duration::MAX, usize::MAX) >= Duration::MAX / 3, "beyond all time");
    }
}
