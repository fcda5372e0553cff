//! How long to wait before a retry: [`Backoff`]. Pure; jitter comes in as an argument.

use std::{error::Error, fmt, time::Duration};

/// A user's own formula: the failed attempts so far (from 1) and the error → the wait.
pub type BackoffFn = fn(u32, &(dyn Error + 'static)) -> Duration;

/// The longest wait that any formula may give: 90 days.
pub const BACKOFF_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The wait before retry *n* (from 1).
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub enum Backoff {
    /// Sidekiq's: `n^4 + 15 + random * 30 * (n + 1)` seconds, random in \[0, 1).
    #[default]
    Sidekiq,
    /// `base * 2^(n - 1)`, at most `cap`, plus up to `jitter` of it.
    Exponential {
        /// The first wait.
        base: Duration,
        /// The longest wait before jitter.
        cap: Duration,
        /// The share of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// `base * n`, at most `cap`, plus up to `jitter` of it.
    Linear {
        /// The first wait, and the step.
        base: Duration,
        /// The longest wait before jitter.
        cap: Duration,
        /// The share of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// Always `wait`, plus up to `jitter` of it.
    Fixed {
        /// The wait.
        wait: Duration,
        /// The share of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// The definition's own function; it adds its own jitter.
    Custom(BackoffFn),
}

impl Backoff {
    /// The wait before retry `n` (from 1), with `random` in \[0, 1). Never above [`BACKOFF_MAX`].
    pub fn wait(&self, n: u32, error: &(dyn Error + 'static), random: f64) -> Duration {
        let n = n.max(1);
        let wait = match *self {
            Self::Sidekiq => {
                let n = f64::from(n);
                Duration::try_from_secs_f64(n.powi(4) + 15.0 + random * 30.0 * (n + 1.0))
                    .unwrap_or(BACKOFF_MAX)
            }
            Self::Exponential { base, cap, jitter } => {
                let doubled = base.saturating_mul(2_u32.saturating_pow(n - 1));
                spread(doubled.min(cap), jitter, random)
            }
            Self::Linear { base, cap, jitter } => {
                spread(base.saturating_mul(n).min(cap), jitter, random)
            }
            Self::Fixed { wait, jitter } => spread(wait, jitter, random),
            Self::Custom(formula) => formula(n, error),
        };
        wait.min(BACKOFF_MAX)
    }

    /// Says what is wrong with the numbers, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let (wait, jitter) = match *self {
            Self::Sidekiq | Self::Custom(_) => return None,
            Self::Exponential { base, cap, jitter } | Self::Linear { base, cap, jitter } => {
                (base.min(cap), jitter)
            }
            Self::Fixed { wait, jitter } => (wait, jitter),
        };
        if wait.is_zero() {
            return Some("the backoff's wait is zero; failing tasks would spin");
        }
        (!(0.0..=1.0).contains(&jitter)).then_some("the backoff's jitter is not within 0 to 1")
    }
}

/// Jitter is only ever added: nothing retries earlier than asked.
fn spread(wait: Duration, jitter: f64, random: f64) -> Duration {
    wait.saturating_add(
        Duration::try_from_secs_f64(wait.as_secs_f64() * jitter * random).unwrap_or_default(),
    )
}

/// By what they say: two of the user's own functions are alike only if they are the same one.
impl PartialEq for Backoff {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Custom(a), Self::Custom(b)) => std::ptr::fn_addr_eq(*a, *b),
            (Self::Custom(_), _) | (_, Self::Custom(_)) => false,
            _ => format!("{self:?}") == format!("{other:?}"),
        }
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sidekiq => f.write_str("Sidekiq"),
            Self::Exponential { base, cap, jitter } => {
                write!(f, "Exponential({base:?}, cap {cap:?}, jitter {jitter})")
            }
            Self::Linear { base, cap, jitter } => {
                write!(f, "Linear({base:?}, cap {cap:?}, jitter {jitter})")
            }
            Self::Fixed { wait, jitter } => write!(f, "Fixed({wait:?}, jitter {jitter})"),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait(backoff: Backoff, n: u32, random: f64) -> f64 {
        backoff.wait(n, &fmt::Error, random).as_secs_f64()
    }

    proptest! {
        #[test]
        fn sidekiq_waits_lie_between_the_formulas_bounds(n in 1_u32..40, random in 0.0..1.0_f64) {
            let floor = f64::from(n).powi(4) + 15.0;
            let found = wait(Backoff::Sidekiq, n, random);
            prop_assert!(found >= floor - 1e-6);
            prop_assert!(found <= floor + 30.0 * f64::from(n + 1));
        }

        #[test]
        fn no_formula_retries_early_or_beyond_its_cap_and_jitter(
            n in 1_u32..5_000, random in 0.0..1.0_f64, base in 1_u64..100, cap in 100_u64..10_000,
            jitter in 0.0..=1.0_f64,
        ) {
            let (base, cap) = (Duration::from_secs(base), Duration::from_secs(cap));
            for backoff in [
                Backoff::Exponential { base, cap, jitter },
                Backoff::Linear { base, cap, jitter },
                Backoff::Fixed { wait: base, jitter },
            ] {
                let found = wait(backoff, n, random);
                prop_assert!(found >= base.as_secs_f64());
                prop_assert!(found <= cap.as_secs_f64() * (1.0 + jitter) + 1e-6);
            }
        }
    }

    #[test]
    fn the_mean_sidekiq_wait_is_the_formulas_mean() {
        let mut random = fastrand::Rng::with_seed(7);
        for n in [1, 3, 10] {
            let rounds = 20_000;
            let sum: f64 =
                (0..rounds).map(|_| wait(Backoff::Sidekiq, n, random.f64())).sum::<f64>();
            let expected = f64::from(n).powi(4) + 15.0 + 15.0 * f64::from(n + 1);
            assert!((sum / f64::from(rounds) - expected).abs() < 0.02 * expected, "retry {n}");
        }
    }
}
