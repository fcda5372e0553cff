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
    log_event,
};
use tokio::time::Instant;

use crate::{standing::Standing, wakeups::Wakeups};

/// The claimer waits for no due time.
const NO_DUE: u64 = u64::MAX;

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

    /// How many workers share the cleaning, as last known.
    pub(crate) fn peers(&self) -> usize {
        self.peers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_peers(&self, peers: usize) {
        self.peers.store(peers.max(1), Ordering::Relaxed);
    }

    /// The position of the queue of that name.
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
    /// How often the queue may have got work: by a wakeup, a poll, a claim that left work.
    hints: AtomicU64,
    /// The number of hints when the last claim was sent.
    asked: AtomicU64,
    /// The number of hints when the last claim that Redis executed was sent.
    answered: AtomicU64,
    /// The number of hints before the last claim that left no work.
    settled: AtomicU64,
    standing: Mutex<Standing>,
    /// How many workers the queue has, by the last heartbeat.
    workers: AtomicUsize,
    /// It was logged that newer programs use the queue.
    is_outdated: AtomicBool,
    made: Instant,
    /// When the claimer must claim because a task is due, in ms after `made`.
    due_ms: AtomicU64,
    wakeups: Arc<Wakeups>,
}

impl Served {
    pub(crate) fn new(
        name: QueueName,
        weight: u32,
        worker: WorkerId,
        wakeups: Arc<Wakeups>,
    ) -> Self {
        let standing = Standing::new(worker);
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
            made: Instant::now(),
            due_ms: AtomicU64::new(NO_DUE),
            wakeups,
        }
    }

    /// Logs that a claim was rejected. That newer programs use the queue is logged once, with what
    /// to do.
    pub(crate) fn log_rejection(&self, log: &Log, problem: &BrokerError) {
        let (queue, problem) = (self.name.clone(), problem.clone());
        if problem.refusal() != Some(Refusal::Newer) {
            log_event!(log, ERROR, %queue, error = %problem, "Redis rejected a claim");
        } else if !self.is_outdated.swap(true, Ordering::Relaxed) {
            log_event!(
                log,
                ERROR,
                %queue,
                error = %problem,
                "newer programs use this queue; this worker claims nothing from it and serves its \
                 other queues: upgrade it to their version of Optimus"
            );
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id under which this worker is registered in the queue now.
    pub(crate) fn worker(&self) -> WorkerId {
        self.standing().worker.clone()
    }

    /// Takes a new id after a lost lease, so that calls under the old id do no harm.
    pub(crate) fn replace_worker(&self, worker: WorkerId, registered_at: Instant, lease: Duration) {
        let mut standing = self.standing();
        standing.worker = worker;
        standing.registered(registered_at, lease);
    }

    /// The worker is registered under a usual lease.
    pub(crate) fn registered(&self, registered_at: Instant, lease: Duration) {
        self.standing().registered(registered_at, lease);
    }

    pub(crate) fn received_seq(&self) -> u64 {
        self.standing().received_seq
    }

    pub(crate) fn set_received_seq(&self, seq: u64) {
        self.standing().received_seq = seq;
    }

    /// How many claims may have turned a long lease into a usual one.
    pub(crate) fn grants(&self) -> u64 {
        self.standing().grants()
    }

    /// A claim is sent to this queue, which also covers its due time. Returns the queue's name.
    pub(crate) fn claim_sent(&self, sent_at: Instant, usual: Duration) -> &QueueName {
        self.set_due(None);
        if self.standing().claim_sent(sent_at, usual) {
            self.wakeups.beat_wanted();
        }
        &self.name
    }

    /// A claim is answered, or was not done.
    pub(crate) fn claim_ended(&self) {
        self.standing().claim_ended();
    }

    /// The lease that heartbeats must keep.
    pub(crate) fn lease_to_keep(&self, usual: Duration) -> Duration {
        self.standing().lease_to_keep(usual)
    }

    /// A heartbeat that was sent after this many grants was acknowledged.
    pub(crate) fn renewed(&self, sent_at: Instant, lease: Duration, grants: u64) {
        self.standing().renewed(sent_at, lease, grants);
    }

    /// A claim may have been granted something, so the lease may be a usual one from now on.
    pub(crate) fn granted(&self, sent_at: Instant, usual: Duration) {
        if self.standing().granted(sent_at, usual) {
            self.wakeups.beat_wanted();
        }
    }

    /// The answer to a claim was that the lease is over.
    pub(crate) fn lapsed(&self) {
        self.standing().beat_at = Some(Instant::now());
        self.wakeups.beat_wanted();
    }

    /// When a heartbeat must be sent, if that was not known before.
    pub(crate) fn take_beat_at(&self) -> Option<Instant> {
        self.standing().beat_at.take()
    }

    /// How long the last given lease is.
    pub(crate) fn lease(&self) -> Duration {
        self.standing().lease()
    }

    /// Whether the lease can't have ended yet, whatever Redis does, with a tenth of it as the
    /// margin.
    pub(crate) fn lease_is_certain(&self) -> bool {
        self.standing().lease_is_certain()
    }

    /// Sets when the claimer must claim because a task is due.
    pub(crate) fn set_due(&self, due_at: Option<Instant>) {
        let since = |at: Instant| at.saturating_duration_since(self.made).as_millis();
        let due_ms = due_at.and_then(|at| u64::try_from(since(at)).ok()).unwrap_or(NO_DUE);
        self.due_ms.store(due_ms, Ordering::Release);
    }

    /// The due time for which the claimer has sent no claim yet.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let due_ms = self.due_ms.load(Ordering::Acquire);
        (due_ms != NO_DUE).then(|| self.made + Duration::from_millis(due_ms))
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

    /// A claim is sent. Returns the number of hints, which [`Served::found_empty`] needs later.
    pub(crate) fn ask(&self) -> u64 {
        let hints = self.hints();
        self.asked.fetch_max(hints, Ordering::AcqRel);
        hints
    }

    /// Redis executed a claim that was sent at this number of hints.
    pub(crate) fn answered(&self, hints: u64) {
        self.answered.fetch_max(hints, Ordering::AcqRel);
    }

    /// Whether Redis executed a claim that was sent at this number of hints or later. A claim that
    /// it refused because the lease is over must be sent again.
    pub(crate) fn was_answered(&self, hints: u64) -> bool {
        self.answered.load(Ordering::Acquire) >= hints
    }

    /// Whether a claim was sent at this number of hints or later.
    pub(crate) fn was_asked(&self, hints: u64) -> bool {
        self.asked.load(Ordering::Acquire) >= hints
    }

    /// The queue may have work. Returns the number of hints.
    pub(crate) fn hint(&self) -> u64 {
        let hints = self.hints.fetch_add(1, Ordering::AcqRel) + 1;
        self.wakeups.queue_hinted();
        hints
    }

    /// A claim that was sent at this number of hints left no work. A later wakeup may be for a task
    /// that came after that claim.
    pub(crate) fn found_empty(&self, hints: u64) {
        self.answered(hints);
        self.settled.fetch_max(hints, Ordering::AcqRel);
        self.wakeups.queue_found_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Served {
        Served::new(QueueName::new("q").unwrap(), 1, WorkerId::generate("test", 1), Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_due_time_waits_until_a_claim_is_sent() {
        let (queue, due_at) = (served(), Instant::now() + Duration::from_secs(7));
        assert_eq!(queue.due_at(), None);
        queue.set_due(Some(due_at));
        assert_eq!(queue.due_at(), Some(due_at));
        queue.claim_sent(Instant::now(), Duration::from_secs(15));
        assert_eq!(queue.due_at(), None);
    }

    #[test]
    fn a_claim_that_finds_nothing_does_not_settle_a_wakeup_that_came_after_it_was_sent() {
        let queue = served();
        let sent_at = queue.ask();
        queue.hint();
        queue.found_empty(sent_at);
        assert!(queue.may_have_work());
        queue.found_empty(queue.ask());
        assert!(!queue.may_have_work());
    }
}
