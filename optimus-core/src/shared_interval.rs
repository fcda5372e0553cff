//! The published formula for poll intervals, which keeps the total number of polls constant for any
//! number of workers.

use std::time::Duration;

/// Returns `average * (1/2 + random) * size`. Each of `size` workers waits this long, so that
/// together they act once per `average`, but not in step. `random` is in \[0, 1). The formula is
/// from Optimus-AsyncTask (2019).
pub fn interval(average: Duration, size: usize, random: f64) -> Duration {
    let size = u32::try_from(size.max(1)).unwrap_or(u32::MAX);
    let wait = average.saturating_mul(size).as_secs_f64() * (0.5 + random);
    Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AVERAGE: Duration = Duration::from_secs(15);

    proptest! {
        #[test]
        fn an_interval_lies_between_half_and_one_and_a_half_averages_a_member(
            size in 1_usize..1_000, random in 0.0..1.0_f64,
        ) {
            let found = interval(AVERAGE, size, random).as_secs_f64();
            let unit = 15.0 * f64::from(u32::try_from(size).unwrap());
            prop_assert!(found >= unit * 0.5 - 1e-6 && found < unit * 1.5 + 1e-6);
        }
    }

    #[test]
    fn an_interval_that_overflows_is_the_longest_duration() {
        assert_eq!(interval(Duration::MAX, usize::MAX, 0.9), Duration::MAX);
    }

    #[test]
    fn the_cluster_acts_once_per_average_at_any_size() {
        let mut random = fastrand::Rng::with_seed(11);
        for size in [1_u32, 8, 64] {
            let rounds = 20_000;
            let mean = (0..rounds)
                .map(|_| interval(AVERAGE, size as usize, random.f64()).as_secs_f64())
                .sum::<f64>()
                / f64::from(rounds);
            let acts_per_average = f64::from(size) * 15.0 / mean;
            assert!((acts_per_average - 1.0).abs() < 0.02, "{size} members: {acts_per_average}");
        }
    }
}
