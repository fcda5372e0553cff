//! Tasks that this worker can't run yet, because it does not know their name or their record is
//! newer. Usually a deploy is under way, so these tasks wait and use no attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// Returns how long a task waits after it was a misfit for the `n`th time (from 1). The wait starts
/// at 5 s and doubles up to 60 s.
pub(crate) fn wait(n: u32) -> Duration {
    FIRST.saturating_mul(1 << n.saturating_sub(1).min(10)).min(LONGEST)
}

/// Returns whether the waits of `n` misfits have used up the grace.
pub(crate) fn is_over(n: u32, grace: Duration) -> bool {
    let ramp: Duration = (1..=n.min(5)).map(wait).sum();
    ramp + LONGEST.saturating_mul(n.saturating_sub(5)) >= grace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_waits_5_s_doubling_to_60() {
        let waits: Vec<u64> = (1..=6).map(|n| wait(n).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn a_misfit_is_marked_dead_once_its_waits_add_up_to_the_grace() {
        let hour = Duration::from_secs(3600);
        assert!(!is_over(0, hour));
        let waited = |n| (1..=n).map(wait).sum::<Duration>();
        for n in 1..200 {
            assert_eq!(is_over(n, hour), waited(n) >= hour, "{n}");
        }
    }
}
