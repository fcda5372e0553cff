//! The queues that a worker serves, [`Queues`], and what the roles share about each: [`Served`].

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    QueueName, WorkerId,
    broker::{BrokerError, Refusal},
    log::Log,
    tell,
};
use tokio::time::Instant;

use crate::wakeups::Wakeups;

/// Three heartbeats a lease: one may get lost.
pub(crate) const BEATS_PER_LEASE: u32 = 3;

/// All served queues, in the order in which they were named.
#[derive(Debug)]
pub(crate) struct Queues {
    served: Vec<Served>,
    places: HashMap<QueueName, usize>,
    /// How many workers the most crowded of them has.
    peers: AtomicUsize,
}

impl Queues {
    pub(crate) fn new(served: Vec<Served>) -> Self {
        let places = served.iter().enumerate().map(|(at, queue)| (queue.name.clone(), at));
        Self { places: places.collect(), served, peers: AtomicUsize::new(1) }
    }

    /// How many workers share the upkeep, as was last seen.
    pub(crate) fn peers(&self) -> usize {
        self.peers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_peers(&self, peers: usize) {
        self.peers.store(peers.max(1), Ordering::Relaxed);
    }

    /// Where the queue of that name stands.
    pub(crate) fn place(&self, name: &QueueName) -> Option<usize> {
        self.places.get(name).copied()
    }
}

impl Deref for Queues {
    type Target = [Served];

    fn deref(&self) -> &[Served] {
        &self.served
    }
}

impl<'a> IntoIterator for &'a Queues {
    type Item = &'a Served;
    type IntoIter = std::slice::Iter<'a, Served>;

    fn into_iter(self) -> Self::IntoIter {
        self.served.iter()
    }
}

/// A queue, and this worker's standing in it.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) name: QueueName,
    pub(crate) weight: u32,
    /// How often there was reason to think that it holds work: it was rung, polled, left with more.
    hints: AtomicU64,
    /// As many of them as there were when the last claim was sent.
    asked: AtomicU64,
    /// As many of them as there were when the last claim that Redis did was sent.
    answered: AtomicU64,
    /// As many of them as a claim that came after them has answered: nothing was left.
    settled: AtomicU64,
    standing: Mutex<Standing>,
    /// How many workers it has, as the last heartbeat was told.
    workers: AtomicUsize,
    /// It was told that newer workers serve it.
    is_outdated: AtomicBool,
    wakeups: Arc<Wakeups>,
}

#[derive(Debug)]
struct Standing {
    worker: WorkerId,
    /// The last claim whose answer was fully taken in.
    heard_seq: u64,
    /// When the last acknowledged heartbeat was *sent*: the lease counts from no later than this.
    renewed_at: Instant,
    /// How long it lasts.
    lease: Duration,
    /// How many claims may have made a long lease a usual one.
    grants: u64,
    /// Claims that were sent and not heard of: each may have made a long lease a usual one.
    open_claims: usize,
    /// When the next heartbeat is wanted, if that was not known at the last one.
    beat_at: Option<Instant>,
    /// When the earliest lease of another worker is over.
    next_expiry: Option<Instant>,
}

impl Standing {
    /// A heartbeat is wanted by then, or sooner where it was.
    fn want_beat(&mut self, at: Instant) {
        self.beat_at = Some(self.beat_at.map_or(at, |sooner| sooner.min(at)));
    }
}

impl Served {
    pub(crate) fn new(
        name: QueueName,
        weight: u32,
        worker: WorkerId,
        wakeups: Arc<Wakeups>,
    ) -> Self {
        let standing = Standing {
            worker,
            heard_seq: 0,
            renewed_at: Instant::now(),
            lease: Duration::ZERO,
            grants: 0,
            open_claims: 0,
            beat_at: None,
            next_expiry: None,
        };
        Self {
            name,
            weight,
            hints: AtomicU64::new(1),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            standing: Mutex::new(standing),
            workers: AtomicUsize::new(1),
            is_outdated: AtomicBool::new(false),
            wakeups,
        }
    }

    /// A claim was rejected. That newer workers are here is said once, with what to do.
    pub(crate) fn log_rejection(&self, log: &Log, problem: &BrokerError) {
        let (queue, problem) = (self.name.clone(), problem.clone());
        if problem.refusal() != Some(Refusal::Newer) {
            tell!(log, ERROR, %queue, %problem, "a claim was rejected");
        } else if !self.is_outdated.swap(true, Ordering::Relaxed) {
            tell!(
                log,
                ERROR,
                %queue,
                %problem,
                "newer programs use this queue; this worker claims nothing from it and serves its \
                 other queues: upgrade it to their version of Optimus"
            );
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id under which this worker is registered here now.
    pub(crate) fn worker(&self) -> WorkerId {
        self.standing().worker.clone()
    }

    /// After a lost lease: whatever was sent under the old id can do no harm under the new one.
    pub(crate) fn replace_worker(&self, worker: WorkerId, registered_at: Instant, lease: Duration) {
        self.standing().worker = worker;
        self.registered(registered_at, lease);
    }

    /// The worker is registered under a usual lease.
    pub(crate) fn registered(&self, registered_at: Instant, lease: Duration) {
        let mut standing = self.standing();
        (standing.renewed_at, standing.lease) = (registered_at, lease);
    }

    pub(crate) fn heard_seq(&self) -> u64 {
        self.standing().heard_seq
    }

    pub(crate) fn set_heard_seq(&self, seq: u64) {
        self.standing().heard_seq = seq;
    }

    /// How many claims may have made a long lease a usual one.
    pub(crate) fn grants(&self) -> u64 {
        self.standing().grants
    }

    /// A claim goes to the queue of this name. An answer may take longer than a lease to come.
    pub(crate) fn claim_sent(&self, sent_at: Instant, usual: Duration) -> &QueueName {
        let mut standing = self.standing();
        standing.open_claims += 1;
        if standing.lease > usual {
            standing.want_beat(sent_at + usual / BEATS_PER_LEASE);
            drop(standing);
            self.wakeups.beat_wanted();
        }
        &self.name
    }

    /// One of them is answered, or was not done.
    pub(crate) fn claim_heard(&self) {
        self.standing().open_claims -= 1;
    }

    /// The lease that heartbeats have to keep: a usual one while a claim may have made it that.
    pub(crate) fn lease_to_keep(&self, usual: Duration) -> Duration {
        let standing = self.standing();
        if standing.open_claims > 0 { standing.lease.min(usual) } else { standing.lease }
    }

    /// A heartbeat was acknowledged: the lease is so long, unless a claim that was granted
    /// something since it was sent came after it.
    pub(crate) fn renewed(&self, sent_at: Instant, lease: Duration, grants: u64) {
        let mut standing = self.standing();
        standing.renewed_at = standing.renewed_at.max(sent_at);
        standing.lease = if standing.grants == grants { lease } else { standing.lease.min(lease) };
    }

    /// A claim may have been granted something, so from then on the lease is a usual one.
    pub(crate) fn granted(&self, sent_at: Instant, usual: Duration) {
        let mut standing = self.standing();
        standing.grants += 1;
        if standing.lease > usual {
            (standing.renewed_at, standing.lease) = (sent_at, usual);
            standing.want_beat(sent_at + usual / BEATS_PER_LEASE);
            drop(standing);
            self.wakeups.beat_wanted();
        }
    }

    /// A claim was told that the lease is over.
    pub(crate) fn lapsed(&self) {
        self.standing().beat_at = Some(Instant::now());
        self.wakeups.beat_wanted();
    }

    /// When a heartbeat is wanted that was not known of before.
    pub(crate) fn take_beat_at(&self) -> Option<Instant> {
        self.standing().beat_at.take()
    }

    /// How long the lease is that was given last.
    pub(crate) fn lease(&self) -> Duration {
        self.standing().lease
    }

    /// Whether the lease can't have ended yet, whatever Redis does. A tenth of it is the margin.
    pub(crate) fn lease_is_certain(&self) -> bool {
        let standing = self.standing();
        standing.renewed_at.elapsed() < standing.lease.mul_f64(0.9)
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.standing().next_expiry
    }

    pub(crate) fn set_next_expiry(&self, wait: Option<Duration>) {
        self.standing().next_expiry = wait.map(|wait| Instant::now() + wait);
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_workers(&self, workers: usize) {
        self.workers.store(workers.max(1), Ordering::Relaxed);
    }

    pub(crate) fn may_have_work(&self) -> bool {
        self.hints() > self.settled.load(Ordering::Acquire)
    }

    fn hints(&self) -> u64 {
        self.hints.load(Ordering::Acquire)
    }

    /// A claim is sent. What is answered is to be kept with it, for [`Served::found_empty`].
    pub(crate) fn ask(&self) -> u64 {
        let hints = self.hints();
        self.asked.fetch_max(hints, Ordering::AcqRel);
        hints
    }

    /// Redis did a claim that was sent at so many hints.
    pub(crate) fn answered(&self, hints: u64) {
        self.answered.fetch_max(hints, Ordering::AcqRel);
    }

    /// Whether Redis did a claim that was sent since it had so many hints. One that it refused,
    /// since the lease is over, has to be sent again.
    pub(crate) fn was_answered(&self, hints: u64) -> bool {
        self.answered.load(Ordering::Acquire) >= hints
    }

    /// Whether a claim was sent since it had so many hints.
    pub(crate) fn was_asked(&self, hints: u64) -> bool {
        self.asked.load(Ordering::Acquire) >= hints
    }

    /// It may hold work. Answers how many hints there are now.
    pub(crate) fn hint(&self) -> u64 {
        let hints = self.hints.fetch_add(1, Ordering::AcqRel) + 1;
        self.wakeups.queue_hinted();
        hints
    }

    /// A claim that was sent at so many hints left nothing. A wakeup list that rang since then may
    /// tell of a task that came after it.
    pub(crate) fn found_empty(&self, hints: u64) {
        self.answered(hints);
        self.settled.fetch_max(hints, Ordering::AcqRel);
        self.wakeups.queue_found_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_secs(15);

    fn served() -> Served {
        Served::new(QueueName::new("q").unwrap(), 1, WorkerId::generate("test", 1), Arc::default())
    }

    #[test]
    fn a_grant_makes_a_long_lease_a_usual_one_in_whichever_order_the_answers_come() {
        let queue = served();
        queue.registered(Instant::now(), USUAL);
        let (sent_at, grants) = (Instant::now(), queue.grants());
        queue.renewed(sent_at, 4 * USUAL, grants);
        assert_eq!((queue.lease(), queue.take_beat_at()), (4 * USUAL, None));
        queue.granted(sent_at, USUAL);
        assert_eq!(queue.lease(), USUAL);
        assert_eq!(queue.take_beat_at(), Some(sent_at + USUAL / BEATS_PER_LEASE));
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
        let queue = served();
        let sent_at = Instant::now();
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        queue.claim_sent(sent_at, USUAL);
        assert_eq!(queue.take_beat_at(), Some(sent_at + USUAL / BEATS_PER_LEASE));
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        assert_eq!(queue.lease_to_keep(USUAL), USUAL, "Redis may do the claim after that");
        queue.claim_heard();
        assert_eq!(queue.lease_to_keep(USUAL), 4 * USUAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_lease_is_certain_for_longer_until_something_is_granted() {
        let queue = served();
        let sent_at = Instant::now();
        queue.renewed(sent_at, 4 * USUAL, queue.grants());
        tokio::time::advance(3 * USUAL).await;
        assert!(queue.lease_is_certain());
        queue.granted(sent_at, USUAL);
        assert!(!queue.lease_is_certain());
    }

    #[test]
    fn a_claim_that_finds_nothing_does_not_settle_a_ring_that_came_after_it_was_sent() {
        let queue = served();
        let sent_at = queue.ask();
        queue.hint();
        queue.found_empty(sent_at);
        assert!(queue.may_have_work());
        queue.found_empty(queue.ask());
        assert!(!queue.may_have_work());
    }
}
