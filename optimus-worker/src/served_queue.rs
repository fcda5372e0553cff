//! The state of one queue of the worker that the roles share: [`Served`].

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use optimus_core::{QueueName, WorkerId, broker::BrokerError, log::Log, log_event};
use tokio::time::Instant;

use crate::{lease_state::Standing, role_wakeups::Wakeups};

/// The value if the claimer waits for no due time.
const NO_DUE: u64 = u64::MAX;

/// A queue, and the state of this worker in it.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) name: QueueName,
    pub(crate) weight: u32,
    /// How many events may have added work to the queue: wakeups, polls, and claims that left work.
    hints: AtomicU64,
    /// The number of hints when the last claim was sent.
    asked: AtomicU64,
    /// The number of hints when the last claim that Redis executed was sent.
    answered: AtomicU64,
    /// The number of hints before the last claim that left no work.
    settled: AtomicU64,
    /// Whether Redis or the queue refused the last claim.
    is_refused: AtomicBool,
    standing: Mutex<Standing>,
    /// How many workers the queue has, according to the last heartbeat.
    workers: AtomicUsize,
    /// Whether it was logged that newer programs use the queue.
    is_outdated: AtomicBool,
    made: Instant,
    /// The time when the claimer must claim because a task is due, in ms after `made`.
    due_ms: AtomicU64,
    /// Whether reports have caused effects on other queues.
    posted: AtomicBool,
    /// When a schedule is due, in ms after `made`, as heard since the last look.
    tick_ms: AtomicU64,
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
            is_refused: AtomicBool::new(false),
            standing: Mutex::new(standing),
            workers: AtomicUsize::new(1),
            is_outdated: AtomicBool::new(false),
            made: Instant::now(),
            due_ms: AtomicU64::new(NO_DUE),
            posted: AtomicBool::new(false),
            tick_ms: AtomicU64::new(NO_DUE),
            wakeups,
        }
    }

    /// Logs once that newer programs use the queue.
    pub(crate) fn log_outdated(&self, log: &Log, problem: &BrokerError) {
        let (queue, problem) = (self.name.clone(), problem.clone());
        if !self.is_outdated.swap(true, Ordering::Relaxed) {
            log_event!(
                log,
                ERROR,
                %queue,
                error = %problem,
                "newer programs use this queue; this worker claims nothing from it and serves its \
                 other queues: upgrade this worker to the version of Optimus that those programs \
                 use"
            );
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id under which this worker is registered in the queue now.
    pub(crate) fn worker(&self) -> WorkerId {
        self.standing().worker.clone()
    }

    /// Takes a new id after a lost lease, so that calls under the old id do no harm.
    pub(crate) fn replace_worker(&self, worker: WorkerId, registered_at: Instant, lease: Duration) {
        let mut standing = self.standing();
        standing.worker = worker;
        standing.registered(registered_at, lease);
    }

    /// Notes that the worker is registered under a usual lease.
    pub(crate) fn registered(&self, registered_at: Instant, lease: Duration) {
        self.standing().registered(registered_at, lease);
    }

    /// Returns how long the lease is certain to be valid.
    #[cfg(feature = "metrics")]
    pub(crate) fn lease_left(&self) -> Duration {
        self.standing().lease_left()
    }

    pub(crate) fn received_seq(&self) -> u64 {
        self.standing().received_seq
    }

    pub(crate) fn set_received_seq(&self, seq: u64) {
        self.standing().received_seq = seq;
    }

    /// Returns how many claims may have turned a long lease into a usual one.
    pub(crate) fn grants(&self) -> u64 {
        self.standing().grants()
    }

    /// Notes that a claim is sent to this queue. The claim also covers the due time. Returns the
    /// queue's name.
    pub(crate) fn claim_sent(&self, sent_at: Instant, usual: Duration) -> &QueueName {
        self.set_due(None);
        if self.standing().claim_sent(sent_at, usual) {
            self.wakeups.beat_wanted();
        }
        &self.name
    }

    /// Notes that a claim is answered, or was not executed.
    pub(crate) fn claim_ended(&self) {
        self.standing().claim_ended();
    }

    /// Returns the lease that heartbeats must keep.
    pub(crate) fn lease_to_keep(&self, usual: Duration) -> Duration {
        self.standing().lease_to_keep(usual)
    }

    /// Notes the acknowledgement of a heartbeat that was sent after this many grants.
    pub(crate) fn renewed(&self, sent_at: Instant, lease: Duration, grants: u64) {
        self.standing().renewed(sent_at, lease, grants);
    }

    /// Notes that a claim may have been granted a task, so the lease may be a usual one from now
    /// on.
    pub(crate) fn granted(&self, sent_at: Instant, usual: Duration) {
        if self.standing().granted(sent_at, usual) {
            self.wakeups.beat_wanted();
        }
    }

    /// Notes that the lease is over, according to the answer to a claim.
    pub(crate) fn lapsed(&self) {
        self.standing().beat_at = Some(Instant::now());
        self.wakeups.beat_wanted();
    }

    /// Returns when a heartbeat must be sent, if that was not known before.
    pub(crate) fn take_beat_at(&self) -> Option<Instant> {
        self.standing().beat_at.take()
    }

    /// Returns the length of the last granted lease.
    pub(crate) fn lease(&self) -> Duration {
        self.standing().lease()
    }

    /// Returns whether the lease is certain to be valid. A tenth of the lease is the margin.
    pub(crate) fn lease_is_certain(&self) -> bool {
        self.standing().lease_is_certain()
    }

    /// Sets when the claimer must claim because a task is due.
    pub(crate) fn set_due(&self, due_at: Option<Instant>) {
        let since = |at: Instant| at.saturating_duration_since(self.made).as_millis();
        let due_ms = due_at.and_then(|at| u64::try_from(since(at)).ok()).unwrap_or(NO_DUE);
        self.due_ms.store(due_ms, Ordering::Release);
    }

    /// Returns the due time for which the claimer has sent no claim yet.
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

    /// Notes that a claim is sent. Returns the number of hints, which [`Served::found_empty`] needs
    /// later.
    pub(crate) fn ask(&self) -> u64 {
        let hints = self.hints();
        self.asked.fetch_max(hints, Ordering::AcqRel);
        hints
    }

    /// Notes that Redis executed a claim that was sent at this number of hints.
    pub(crate) fn answered(&self, hints: u64) {
        self.answered.fetch_max(hints, Ordering::AcqRel);
    }

    /// Returns whether Redis executed a claim that was sent at this number of hints or later. A
    /// claim that Redis refused because the lease is over must be sent again.
    pub(crate) fn was_answered(&self, hints: u64) -> bool {
        self.answered.load(Ordering::Acquire) >= hints
    }

    /// Returns whether a claim was sent at this number of hints or later.
    pub(crate) fn was_asked(&self, hints: u64) -> bool {
        self.asked.load(Ordering::Acquire) >= hints
    }

    /// Notes that a claim that was sent at this number of hints was refused. Until one is not, the
    /// queue is polled only, and its wakeups are for other workers.
    pub(crate) fn refused(&self, hints: u64) {
        self.settled.fetch_max(hints, Ordering::AcqRel);
        self.is_refused.store(true, Ordering::Release);
        self.wakeups.queue_found_empty();
    }

    /// Notes that a claim was not refused.
    pub(crate) fn accepted(&self) {
        self.is_refused.store(false, Ordering::Release);
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }

    /// Notes that the queue may have work. Returns the number of hints.
    pub(crate) fn hint(&self) -> u64 {
        let hints = self.hints.fetch_add(1, Ordering::AcqRel) + 1;
        self.wakeups.queue_hinted();
        hints
    }

    /// Notes that a call has caused effects on other queues, which the relay must carry.
    pub(crate) fn effects_posted(&self) {
        self.posted.store(true, Ordering::Release);
        self.wakeups.effects_posted();
    }

    /// Notes that a schedule is due after this time, and wakes the scheduler if that is sooner than
    /// heard before.
    pub(crate) fn tick_heard(&self, wait: Option<Duration>) {
        let Some(wait) = wait else { return };
        let at_ms = self.made.elapsed().saturating_add(wait).as_millis();
        let at_ms = u64::try_from(at_ms).unwrap_or(NO_DUE);
        if self.tick_ms.fetch_min(at_ms, Ordering::AcqRel) > at_ms {
            self.wakeups.tick_heard();
        }
    }

    /// Returns when a schedule is due, if somebody has heard of one since the last call.
    pub(crate) fn take_heard_tick(&self) -> Option<Instant> {
        let at_ms = self.tick_ms.swap(NO_DUE, Ordering::AcqRel);
        (at_ms != NO_DUE).then(|| self.made + Duration::from_millis(at_ms))
    }

    /// Returns whether effects were caused since the last call.
    pub(crate) fn take_posted(&self) -> bool {
        self.posted.swap(false, Ordering::AcqRel)
    }

    /// Notes that a claim that was sent at this number of hints left no work. A later wakeup may be
    /// for a task that arrived after that claim.
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
