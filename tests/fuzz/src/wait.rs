//! Tests waits. No formula overflows, and no wait is shorter than requested.

use std::fmt;

use optimus_core::{BACKOFF_MAX, Backoff, interval};

use crate::draw::Draw;

/// Checks the back-offs and the interval of upkeep, with any numbers.
pub(crate) fn check(data: &[u8]) {
    let mut draw = Draw(data);
    let (base, cap, jitter) = (draw.duration(), draw.duration(), draw.share());
    let n = u32::try_from(draw.number()).unwrap_or(u32::MAX);
    let random = draw.share() * 0.999;
    for backoff in [
        Backoff::Sidekiq,
        Backoff::Exponential { base, cap, jitter },
        Backoff::Linear { base, cap, jitter },
        Backoff::Fixed { wait: base.min(cap), jitter },
    ] {
        let wait = backoff.wait(n, &fmt::Error, random);
        assert!(wait <= BACKOFF_MAX, "{backoff:?}");
        let asked = if backoff == Backoff::Sidekiq { BACKOFF_MAX } else { base.min(cap) };
        assert!(wait >= asked.min(BACKOFF_MAX) || backoff == Backoff::Sidekiq, "{backoff:?}");
        let unhurried = backoff.wait(n, &fmt::Error, 0.0);
        assert!(wait >= unhurried, "{backoff:?}: the jitter made the wait shorter");
    }
    let size = usize::try_from(draw.number()).unwrap_or(usize::MAX);
    let (early, late) = (interval(base, size, 0.0), interval(base, size, random));
    assert!(early >= base.mul_f64(0.49) && late >= early);
}
