//! The wait before a retry: [`Backoff`]. The functions have no side effects; the random number is
//! an argument.

use std::{error::Error, fmt, time::Duration};

/// A user's function that computes the wait from the number of failed attempts (from 1) and the
/// error.
///
/// The error is that of the handler, or an [`Interrupted`] if the handler returned none:
///
/// ```
/// use std::{error::Error, time::Duration};
///
/// # use optimus_core as optimus;
/// use optimus::Interrupted;
///
/// fn patient(failures: u32, error: &(dyn Error + 'static)) -> Duration {
///     match error.downcast_ref() {
///         Some(Interrupted::TimedOut { after }) => *after * 2,
///         _ => Duration::from_secs(10) * failures,
///     }
/// }
/// # let _: optimus_core::BackoffFn = patient;
/// ```
///
/// The function runs on the runtime of the handlers. If it panics, or does not return before the
/// attempt's deadline, the worker uses [`Backoff::Sidekiq`] instead. The same applies if a handler
/// times out while it blocks its thread.
pub type BackoffFn = fn(u32, &(dyn Error + 'static)) -> Duration;

/// The error that a [`BackoffFn`] receives if an attempt ended without an error of its handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Interrupted {
    /// The timeout passed.
    #[error("still running after {after:?}")]
    TimedOut {
        /// How long the attempt had run.
        after: Duration,
    },
    /// The handler panicked with this text.
    #[error("{0}")]
    Panicked(String),
}

/// The longest wait that any formula may return: 90 days.
pub const BACKOFF_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The formula for the wait before retry *n* (from 1).
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
        /// The fraction of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// `base * n`, at most `cap`, plus up to `jitter` of it.
    Linear {
        /// The first wait, and the step.
        base: Duration,
        /// The longest wait before jitter.
        cap: Duration,
        /// The fraction of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// Always `wait`, plus up to `jitter` of it.
    Fixed {
        /// The wait.
        wait: Duration,
        /// The fraction of the wait that is added at random: 0.0 to 1.0.
        jitter: f64,
    },
    /// The function of the definition, which adds its own jitter.
    Custom(BackoffFn),
}

impl Backoff {
    /// Returns the wait before retry `n` (from 1), with `random` in \[0, 1). The wait is never
    /// above [`BACKOFF_MAX`].
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

    /// Describes the first invalid number, if there is one.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let (wait, jitter) = match *self {
            Self::Sidekiq | Self::Custom(_) => return None,
            Self::Exponential { base, cap, jitter } | Self::Linear { base, cap, jitter } => {
                (base.min(cap), jitter)
            }
            Self::Fixed { wait, jitter } => (wait, jitter),
        };
        if wait.is_zero() {
            return Some(
                "the backoff's wait is zero, so a failing task would run again without a pause; \
                 set a wait",
            );
        }
        (!(0.0..=1.0).contains(&jitter)).then_some("the backoff's jitter is not within 0 to 1")
    }
}

/// Adds the jitter. It never subtracts, so no retry is too early.
fn spread(wait: Duration, jitter: f64, random: f64) -> Duration {
    wait.saturating_add(
        Duration::try_from_secs_f64(wait.as_secs_f64() * jitter * random).unwrap_or_default(),
    )
}

/// Compares the values. Two functions of users are equal only if they are the same function.
impl PartialEq for Backoff {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Custom(a), Self::Custom(b)) => std::ptr::fn_addr_eq(*a, *b),
            // The usual one, which is compared at each submit.
            (Self::Sidekiq, Self::Sidekiq) => true,
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
        fn sidekiq_waits_are_within_the_formulas_bounds(n in 1_u32..40, random in 0.0..1.0_f64) {
            let floor = f64::from(n).powi(4) + 15.0;
            let found = wait(Backoff::Sidekiq, n, random);
            prop_assert!(found >= floor - 1e-6);
            prop_assert!(found <= floor + 30.0 * f64::from(n + 1));
        }

        #[test]
        fn no_formula_retries_early_or_later_than_its_cap_and_jitter(
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
    fn each_formula_returns_its_waits() {
        let seconds = Duration::from_secs;
        let (base, cap, jitter) = (seconds(10), seconds(35), 0.5);
        let waits = |backoff, random| [0, 1, 2, 3].map(|n| wait(backoff, n, random));
        let exponential = Backoff::Exponential { base, cap, jitter };
        let linear = Backoff::Linear { base, cap, jitter };
        let fixed = Backoff::Fixed { wait: base, jitter };
        let within = |found: [f64; 4], expected: [f64; 4]| {
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6)
        };
        assert!(within(waits(exponential, 0.0), [10.0, 10.0, 20.0, 35.0]));
        assert!(within(waits(linear, 0.0), [10.0, 10.0, 20.0, 30.0]));
        assert!(within(waits(fixed, 0.5), [12.5; 4]));
        assert!(within(waits(Backoff::Sidekiq, 0.5), [46.0, 46.0, 76.0, 156.0]));
        let own = Backoff::Custom(|n, _| Duration::from_secs(u64::from(n)));
        assert!(within(waits(own, 0.5), [1.0, 1.0, 2.0, 3.0]));
        for endless in [Backoff::Custom(|_, _| Duration::MAX), Backoff::Sidekiq] {
            assert_eq!(endless.wait(u32::MAX, &fmt::Error, 0.5), seconds(90 * 24 * 60 * 60));
        }
    }

    #[test]
    fn a_backoff_that_would_spin_or_has_an_invalid_jitter_is_refused() {
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        let of = |base, cap, jitter| {
            [
                Backoff::Exponential { base, cap, jitter },
                Backoff::Linear { base, cap, jitter },
                Backoff::Fixed { wait: base.min(cap), jitter },
            ]
        };
        for good in of(second, second, 0.0).into_iter().chain(of(second, second, 1.0)) {
            assert_eq!(good.problem(), None, "{good:?}");
        }
        for spinning in of(zero, second, 0.0).into_iter().chain(of(second, zero, 0.0)) {
            assert!(spinning.problem().unwrap().contains("zero"), "{spinning:?}");
        }
        for jitter in [-0.1, 1.1, f64::NAN] {
            for wild in of(second, second, jitter) {
                assert!(wild.problem().unwrap().contains("jitter"), "{wild:?}");
            }
        }
        assert_eq!(Backoff::Sidekiq.problem(), None);
    }

    #[test]
    fn two_backoffs_are_equal_if_their_values_are() {
        let (one, two): (BackoffFn, BackoffFn) =
            (|n, _| Duration::from_secs(u64::from(n)), |_, _| Duration::ZERO);
        let fixed = |seconds| Backoff::Fixed { wait: Duration::from_secs(seconds), jitter: 0.5 };
        assert_eq!(fixed(1), fixed(1));
        assert_ne!(fixed(1), fixed(2));
        assert_ne!(fixed(1), Backoff::Sidekiq);
        assert_eq!(Backoff::Custom(one), Backoff::Custom(one));
        assert_ne!(Backoff::Custom(one), Backoff::Custom(two));
        assert_ne!(Backoff::Custom(one), Backoff::Sidekiq);
        assert_ne!(Backoff::Sidekiq, Backoff::Custom(one));
    }

    #[test]
    fn the_mean_sidekiq_wait_is_the_mean_of_the_formula() {
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
