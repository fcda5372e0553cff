//! Decides how long a ledger without a stamp of its client is kept: [`Ledgers`].

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use optimus_core::broker::Broker;
use tokio::time::Instant;

/// A live client stamps its ledgers every ten minutes.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The time without a stamp after an outage. If this worker has recently lost its own connection,
/// clients may have lost theirs, too.
const IDLE_AFTER_OUTAGE: Duration = Duration::from_secs(24 * 60 * 60);
const OUTAGE_IS_OVER: Duration = Duration::from_secs(15 * 60);

/// How long this worker has been connected.
pub(crate) struct Ledgers(Mutex<Held>);

struct Held {
    breaks: u64,
    since: Instant,
}

impl Ledgers {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Held { breaks: 0, since: Instant::now() }))
    }

    /// Returns how long a ledger may be without a stamp before it is purged.
    pub(crate) fn idle(&self, broker: &Broker) -> Duration {
        self.after(broker.breaks(), Instant::now())
    }

    fn after(&self, breaks: u64, now: Instant) -> Duration {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.breaks != breaks {
            *held = Held { breaks, since: now };
        }
        if now.duration_since(held.since) < OUTAGE_IS_OVER { IDLE_AFTER_OUTAGE } else { IDLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_given_a_day_until_clients_had_time_to_reconnect() {
        let ledgers = Ledgers::new();
        let begun = Instant::now();
        assert_eq!(ledgers.after(0, begun), IDLE_AFTER_OUTAGE, "the worker has just started");
        assert_eq!(ledgers.after(0, begun + OUTAGE_IS_OVER * 2), IDLE);
        let broken = begun + 4 * OUTAGE_IS_OVER;
        assert_eq!(ledgers.after(1, broken), IDLE_AFTER_OUTAGE);
        assert_eq!(ledgers.after(1, broken + OUTAGE_IS_OVER / 2), IDLE_AFTER_OUTAGE);
        assert_eq!(ledgers.after(1, broken + OUTAGE_IS_OVER), IDLE);
    }
}
