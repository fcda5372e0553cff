//! What a heartbeat makes of Redis' account while claims and reports are on their way.

use optimus_core::{
    Lease, Task, WorkerId,
    broker::{Claimed, Give, Release},
};

use super::*;
use crate::{
    attempts::Attempt,
    idle_worker::{Nothing, idle_worker},
    prepare::Claim,
};

/// A worker whose roles don't run: the test makes its moves.
struct Still {
    shared: Arc<Shared>,
    heartbeat: Heartbeat,
}

impl Still {
    /// With one task in its queue.
    async fn new(name: &str) -> Self {
        let (client, shared) = idle_worker(name).await;
        client.submit(Nothing {}.call()).await.unwrap();
        Self { heartbeat: Heartbeat::new(shared.clone()), shared }
    }

    fn queue(&self) -> &Served {
        &self.shared.queues[0]
    }

    /// Redis carries out a claim; its answer is not taken in.
    async fn claim(&self, seq: u64) -> Claimed {
        let (queue, broker) = (self.queue(), &self.shared.broker);
        let claimed = broker.claim(&queue.name, &queue.worker(), seq, 1).await.unwrap();
        assert_eq!(claimed.grants.len(), 1);
        claimed
    }

    /// The answer is taken in: the attempt begins.
    fn take_in(&self, claimed: Claimed) -> Arc<Attempt> {
        self.take_in_as(self.queue().worker(), claimed)
    }

    /// As [`take_in`](Self::take_in), of a claim that was sent under this id.
    fn take_in_as(&self, worker: WorkerId, claimed: Claimed) -> Arc<Attempt> {
        let Claimed { token, now_ms, mut grants, .. } = claimed;
        let grant = grants.remove(0);
        let lease = Lease { id: grant.id, worker, token };
        let (record, tries, was_tried) = (grant.record, grant.tries, grant.was_tried);
        let start_by = grant.start_by;
        let claim = Claim { lease, record, tries, was_tried, start_by, now_ms, alone: false };
        let slot = self.shared.slots.take(0).unwrap();
        let attempt = crate::prepare::prepare(&self.shared, claim, slot).unwrap().attempt;
        self.shared.attempts.insert(std::iter::once(&attempt));
        self.queue().set_heard_seq(token.seq);
        attempt
    }

    /// What Redis answers to a heartbeat.
    async fn renew(&self) -> Renewed {
        let queue = self.queue();
        let lease = self.shared.config.lease;
        self.shared.broker.renew(&queue.name, &queue.worker(), lease).await.unwrap()
    }

    /// Whether a heartbeat was acknowledged.
    async fn beats(&self) -> bool {
        self.heartbeat.beat(&[0]).await == [true]
    }

    /// How many reports wait to be sent.
    fn reports(&self) -> usize {
        self.shared.reporter.len()
    }
}

#[tokio::test]
async fn a_claim_whose_answer_is_on_its_way_is_left_alone() {
    let still = Still::new("heartbeat-on-its-way").await;
    let claimed = still.claim(1).await;
    assert!(still.beats().await);
    assert_eq!(still.reports(), 0);
    let attempt = still.take_in(claimed);
    assert!(still.beats().await);
    assert_eq!((still.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn a_claim_whose_answer_never_came_is_given_back() {
    let still = Still::new("heartbeat-never-came").await;
    still.claim(1).await;
    // The claim after it was answered.
    still.queue().set_heard_seq(2);
    assert!(still.beats().await);
    assert_eq!(still.reports(), 1);
}

#[tokio::test]
async fn an_attempt_that_began_after_the_heartbeat_was_sent_is_not_taken_for_lost() {
    let still = Still::new("heartbeat-began-after").await;
    let before = befores(&still.shared).remove(0);
    let renewed = still.renew().await;
    let attempt = still.take_in(still.claim(1).await);
    reconcile(&still.shared, &before, &renewed);
    assert_eq!((still.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn an_answer_taken_in_while_the_heartbeat_was_under_way_is_not_given_back() {
    let still = Still::new("heartbeat-under-way").await;
    let claimed = still.claim(1).await;
    let before = befores(&still.shared).remove(0);
    let renewed = still.renew().await;
    let attempt = still.take_in(claimed);
    reconcile(&still.shared, &before, &renewed);
    assert_eq!((still.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn of_two_attempts_at_one_task_that_under_the_old_token_is_stopped() {
    let still = Still::new("heartbeat-old-token").await;
    let old = still.take_in(still.claim(1).await);
    // As after a release that this worker does not remember.
    let given = Release { lease: old.lease.clone(), give: Give::Head };
    let (broker, queue) = (&still.shared.broker, still.queue());
    let call = broker.release_call(&queue.name, &queue.worker(), &[given]);
    assert!(broker.report(call).await.unwrap().is_empty());
    let new = still.take_in(still.claim(2).await);
    assert_eq!(old.lease.id, new.lease.id);

    assert!(still.beats().await);
    assert_eq!(old.stopped().map(|(why, _)| why), Some(Stop::Lost));
    assert_eq!((new.stopped(), still.reports()), (None, 0));
}

#[tokio::test]
async fn an_attempt_that_began_while_its_id_was_replaced_is_stopped_by_the_next_heartbeat() {
    let still = Still::new("heartbeat-replaced").await;
    let (old, claimed) = (still.queue().worker(), still.claim(1).await);
    let (new, lease) = (new_worker_id(&still.shared.config), still.shared.config.lease);
    still.queue().replace_worker(new, Instant::now(), lease);
    let attempt = still.take_in_as(old, claimed);
    assert!(befores(&still.shared)[0].attempts.is_empty());
    assert_eq!(attempt.stopped().map(|(why, _)| why), Some(Stop::Lost));
}

#[tokio::test]
async fn a_cancel_whose_message_was_lost_is_heard_of_with_the_heartbeat() {
    let still = Still::new("heartbeat-cancel").await;
    let attempt = still.take_in(still.claim(1).await);
    still.shared.broker.cancel(&attempt.lease.id).await.unwrap();
    assert!(still.beats().await);
    assert_eq!(attempt.stopped().map(|(why, _)| why), Some(Stop::Cancelled));
}

#[tokio::test]
async fn a_worker_that_is_registered_no_more_goes_on_under_another_id() {
    let still = Still::new("heartbeat-new-id").await;
    let old = still.queue().worker();
    still.shared.broker.leave(&still.queue().name, &old).await.unwrap();
    assert!(still.beats().await);
    assert_ne!(still.queue().worker(), old);
    // As what it would have been granted under its old id.
    assert_eq!(still.take_in(still.claim(1).await).lease.worker, still.queue().worker());
}
