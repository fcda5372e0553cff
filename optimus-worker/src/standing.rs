//! A worker's standing in a queue: its id, its claims, and the lease it relies on: [`Standing`].

use std::time::Duration;

use optimus_core::WorkerId;
use tokio::time::Instant;

/// Three heartbeats a lease: one may get lost.
pub(crate) const BEATS_PER_LEASE: u32 = 3;

/// As this worker knows it; Redis may know better.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) worker: WorkerId,
    /// The last claim whose answer was fully taken in.
    pub(crate) heard_seq: u64,
    /// When the next heartbeat is wanted, if that was not known at the last one.
    pub(crate) beat_at: Option<Instant>,
    /// When the earliest lease of another worker is over.
    pub(crate) next_expiry: Option<Instant>,
    /// When the last acknowledged heartbeat was *sent*: the lease counts from no later than this.
    renewed_at: Instant,
    /// How long it lasts.
    lease: Duration,
    /// How many claims may have made a long lease a usual one.
    grants: u64,
    /// Claims that were sent and not heard of: each may have made a long lease a usual one.
    open_claims: usize,
}

impl Standing {
    /// Of a worker that is not registered yet.
    pub(crate) fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            heard_seq: 0,
            beat_at: None,
            next_expiry: None,
            renewed_at: Instant::now(),
            lease: Duration::ZERO,
            grants: 0,
            open_claims: 0,
        }
    }

    /// The worker is registered under a usual lease.
    pub(crate) fn registered(&mut self, registered_at: Instant, lease: Duration) {
        (self.renewed_at, self.lease) = (registered_at, lease);
    }

    pub(crate) fn grants(&self) -> u64 {
        self.grants
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// A claim is sent, whose answer may take longer than a lease to come. Whether a heartbeat is
    /// wanted sooner.
    pub(crate) fn claim_sent(&mut self, sent_at: Instant, usual: Duration) -> bool {
        self.open_claims += 1;
        let is_long = self.lease > usual;
        if is_long {
            self.want_beat(sent_at + usual / BEATS_PER_LEASE);
        }
        is_long
    }

    /// A claim is answered, or was not done.
    pub(crate) fn claim_heard(&mut self) {
        self.open_claims -= 1;
    }

    /// The lease that heartbeats have to keep: a usual one while a claim may have made it that.
    pub(crate) fn lease_to_keep(&self, usual: Duration) -> Duration {
        if self.open_claims > 0 { self.lease.min(usual) } else { self.lease }
    }

    /// A heartbeat was acknowledged: the lease is so long, unless a claim that was granted
    /// something since it was sent came after it.
    pub(crate) fn renewed(&mut self, sent_at: Instant, lease: Duration, grants: u64) {
        self.renewed_at = self.renewed_at.max(sent_at);
        self.lease = if self.grants == grants { lease } else { self.lease.min(lease) };
    }

    /// A claim may have been granted something, so from then on the lease is a usual one. Whether a
    /// heartbeat is wanted sooner.
    pub(crate) fn granted(&mut self, sent_at: Instant, usual: Duration) -> bool {
        self.grants += 1;
        let is_long = self.lease > usual;
        if is_long {
            (self.renewed_at, self.lease) = (sent_at, usual);
            self.want_beat(sent_at + usual / BEATS_PER_LEASE);
        }
        is_long
    }

    /// Whether the lease can't have ended yet, whatever Redis does. A tenth of it is the margin.
    pub(crate) fn lease_is_certain(&self) -> bool {
        self.renewed_at.elapsed() < self.lease.mul_f64(0.9)
    }

    /// A heartbeat is wanted by then, or sooner where it was.
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
    fn a_grant_makes_a_long_lease_a_usual_one_in_whichever_order_the_answers_come() {
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
            "it may have been asked for before the grant"
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
        assert_eq!(queue.lease_to_keep(USUAL), USUAL, "Redis may do the claim after that");
        queue.claim_heard();
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
