//! The state of a worker in a queue ([`Standing`]): its id, its claims, and the lease on which it
//! relies.

use std::time::Duration;

use optimus_core::WorkerId;
use tokio::time::Instant;

/// Each lease has three heartbeats, so that one of them may be lost.
pub(crate) const BEATS_PER_LEASE: u32 = 3;

/// The state as this worker knows it. Redis may have a later one.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) worker: WorkerId,
    /// The last claim whose answer, like all answers before it, was fully processed.
    pub(crate) received_seq: u64,
    /// When the next heartbeat must be sent, if that was not known at the last one.
    pub(crate) beat_at: Option<Instant>,
    /// When the earliest lease of another worker ends.
    pub(crate) next_expiry: Option<Instant>,
    /// When the last acknowledged heartbeat was *sent*. The lease starts no earlier than this.
    renewed_at: Instant,
    /// The length of the lease.
    lease: Duration,
    /// How many claims may have turned a long lease into a usual one.
    grants: u64,
    /// How many claims have no answer. Each of them may have turned a long lease into a usual one.
    open_claims: usize,
}

impl Standing {
    /// Returns the state of a worker that is not registered yet.
    pub(crate) fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            received_seq: 0,
            beat_at: None,
            next_expiry: None,
            renewed_at: Instant::now(),
            lease: Duration::ZERO,
            grants: 0,
            open_claims: 0,
        }
    }

    /// Notes that the worker is registered under a usual lease.
    pub(crate) fn registered(&mut self, registered_at: Instant, lease: Duration) {
        (self.renewed_at, self.lease) = (registered_at, lease);
    }

    pub(crate) fn grants(&self) -> u64 {
        self.grants
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Notes that a claim is sent. Its answer may take longer than a lease. Returns whether a
    /// heartbeat must be sent sooner.
    pub(crate) fn claim_sent(&mut self, sent_at: Instant, usual: Duration) -> bool {
        self.open_claims += 1;
        let is_long = self.lease > usual;
        if is_long {
            self.want_beat(sent_at + usual / BEATS_PER_LEASE);
        }
        is_long
    }

    /// Notes that a claim is answered, or was not executed.
    pub(crate) fn claim_ended(&mut self) {
        self.open_claims -= 1;
    }

    /// Returns the lease that heartbeats must keep. It is a usual lease while a claim may have
    /// shortened it.
    pub(crate) fn lease_to_keep(&self, usual: Duration) -> Duration {
        if self.open_claims > 0 { self.lease.min(usual) } else { self.lease }
    }

    /// Notes that a heartbeat was acknowledged with this lease. The lease may be shorter if a claim
    /// was granted a task after the heartbeat was sent.
    pub(crate) fn renewed(&mut self, sent_at: Instant, lease: Duration, grants: u64) {
        self.renewed_at = self.renewed_at.max(sent_at);
        self.lease = if self.grants == grants { lease } else { self.lease.min(lease) };
    }

    /// Notes that a claim may have been granted a task, so the lease may be a usual one from now
    /// on. Returns whether a heartbeat must be sent sooner.
    pub(crate) fn granted(&mut self, sent_at: Instant, usual: Duration) -> bool {
        self.grants += 1;
        let is_long = self.lease > usual;
        if is_long {
            (self.renewed_at, self.lease) = (sent_at, usual);
            self.want_beat(sent_at + usual / BEATS_PER_LEASE);
        }
        is_long
    }

    /// Returns whether the lease is certain to be valid.
    pub(crate) fn lease_is_certain(&self) -> bool {
        !self.lease_left().is_zero()
    }

    /// Returns how long the lease is certain to be valid. A tenth of the lease is the margin.
    pub(crate) fn lease_left(&self) -> Duration {
        self.lease.mul_f64(0.9).saturating_sub(self.renewed_at.elapsed())
    }

    /// Notes that a heartbeat must be sent by this time, or sooner if an earlier time was set.
    fn want_beat(&mut self, at: Instant) {
        self.beat_at = Some(self.beat_at.map_or(at, |sooner| sooner.min(at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_secs(15);

    fn standing() -> Standing {
        Standing::new(WorkerId::generate("test", 1))
    }

    #[test]
    fn a_grant_makes_a_long_lease_a_usual_one_in_any_order_of_the_answers() {
        let mut queue = standing();
        queue.registered(Instant::now(), USUAL);
        let (sent_at, grants) = (Instant::now(), queue.grants());
        queue.renewed(sent_at, 4 * USUAL, grants);
        assert_eq!((queue.lease(), queue.beat_at), (4 * USUAL, None));
        assert!(queue.granted(sent_at, USUAL));
        assert_eq!(queue.lease(), USUAL);
        assert_eq!(queue.beat_at, Some(sent_at + USUAL / BEATS_PER_LEASE));
        queue.renewed(sent_at, 4 * USUAL, grants);
        assert_eq!(
            queue.lease_to_keep(Duration::MAX),
            USUAL,
            "the lease may have been requested before the grant"
        );
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        assert_eq!(queue.lease(), 4 * USUAL);
    }

    #[test]
    fn while_a_claim_is_not_answered_heartbeats_keep_a_usual_lease() {
        let mut queue = standing();
        let sent_at = Instant::now();
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        assert!(queue.claim_sent(sent_at, USUAL));
        assert_eq!(queue.beat_at, Some(sent_at + USUAL / BEATS_PER_LEASE));
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        assert_eq!(
            queue.lease_to_keep(USUAL),
            USUAL,
            "Redis may execute the claim after the heartbeat"
        );
        queue.claim_ended();
        assert_eq!(queue.lease_to_keep(USUAL), 4 * USUAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_lease_is_certain_for_longer_until_something_is_granted() {
        let mut queue = standing();
        let sent_at = Instant::now();
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        tokio::time::advance(3 * USUAL).await;
        assert!(queue.lease_is_certain());
        queue.granted(sent_at, USUAL);
        assert!(!queue.lease_is_certain());
    }
}
