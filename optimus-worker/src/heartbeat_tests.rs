//! The effect of a heartbeat on the tasks that Redis records while claims and reports are under
//! way.

use optimus_core::{
    Client, Lease, Task, WorkerId,
    broker::{Claimed, Give, Release},
};
use optimus_testkit::{EachEvent, LogEvent};

use super::*;
use crate::{Worker, attempts::Attempt, prepare::Claim, test_worker::Nothing};

/// A worker whose roles don't run: the test does their work step by step.
struct Stepped {
    shared: Arc<Shared>,
    heartbeat: Heartbeat,
}

impl Stepped {
    /// Creates a worker with one task in its queue.
    async fn new(name: &str) -> Self {
        Self::serving(name, &["default"]).await
    }

    /// The same, with a task in the first of these queues.
    async fn serving(name: &str, queues: &[&str]) -> Self {
        let url = format!("memory://{name}");
        let client = Client::builder(&url).connect().await.unwrap();
        client.submit(Nothing {}.call()).await.unwrap();
        let worker = Worker::builder(&url).quiet().only_named_tasks().task_type::<Nothing>();
        let shared = worker.queues(queues.iter().copied()).build().unwrap().idle_worker().await;
        Self { heartbeat: Heartbeat::new(shared.clone()), shared }
    }

    fn queue(&self) -> &Served {
        &self.shared.queues[0]
    }

    /// Redis executes a claim, but the answer is not processed.
    async fn claim(&self, seq: u64) -> Claimed {
        let (queue, broker) = (self.queue(), &self.shared.broker);
        let claimed = broker.claim(&queue.name, &queue.worker(), seq, 1).await.unwrap();
        assert_eq!(claimed.grants.len(), 1);
        claimed
    }

    /// Processes the answer, so that the attempt begins.
    fn take_in(&self, claimed: Claimed) -> Arc<Attempt> {
        self.take_in_as(self.queue().worker(), claimed)
    }

    /// Does the same as [`take_in`](Self::take_in) for a claim that was sent under this id.
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
        self.queue().set_received_seq(token.seq);
        attempt
    }

    /// Returns the answer of Redis to a heartbeat.
    async fn renew(&self) -> Renewed {
        let queue = self.queue();
        let lease = self.shared.config.lease;
        self.shared.broker.renew(&queue.name, &queue.worker(), lease).await.unwrap()
    }

    /// Sends a heartbeat. Returns whether it was acknowledged.
    async fn beats(&self) -> bool {
        let answers = self.heartbeat.beat(&[0]).await;
        matches!(answers[..], [(0, Ok(()))])
    }

    /// Returns how many reports wait to be sent.
    fn reports(&self) -> usize {
        self.shared.reporter.len()
    }
}

#[tokio::test]
async fn a_claim_whose_answer_is_under_way_is_not_given_back() {
    let worker = Stepped::new("heartbeat-on-its-way").await;
    let claimed = worker.claim(1).await;
    assert!(worker.beats().await);
    assert_eq!(worker.reports(), 0);
    let attempt = worker.take_in(claimed);
    assert!(worker.beats().await);
    assert_eq!((worker.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn a_claim_whose_answer_never_came_is_given_back() {
    let worker = Stepped::new("heartbeat-never-came").await;
    worker.claim(1).await;
    // The next claim was answered.
    worker.queue().set_received_seq(2);
    assert!(worker.beats().await);
    assert_eq!(worker.reports(), 1);
}

#[tokio::test]
async fn a_task_that_never_came_is_given_back_although_calls_of_runs_are_always_under_way() {
    let worker = Stepped::new("heartbeat-always-collects").await;
    worker.claim(1).await;
    worker.queue().set_received_seq(2);
    let first = worker.shared.collects.begin();
    assert!(worker.beats().await);
    assert_eq!(worker.reports(), 0, "it may be a call that comes");
    let _second = worker.shared.collects.begin();
    drop(first);
    assert!(worker.beats().await);
    assert_eq!(worker.reports(), 1);
}

#[tokio::test]
async fn an_attempt_that_began_after_the_heartbeat_was_sent_is_not_lost() {
    let worker = Stepped::new("heartbeat-began-after").await;
    let before = befores(&worker.shared).remove(0);
    let renewed = worker.renew().await;
    let attempt = worker.take_in(worker.claim(1).await);
    reconcile(&worker.shared, &before, &renewed);
    assert_eq!((worker.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn a_claim_whose_answer_came_during_the_heartbeat_is_not_given_back() {
    let worker = Stepped::new("heartbeat-under-way").await;
    let claimed = worker.claim(1).await;
    let before = befores(&worker.shared).remove(0);
    let renewed = worker.renew().await;
    let attempt = worker.take_in(claimed);
    reconcile(&worker.shared, &before, &renewed);
    assert_eq!((worker.reports(), attempt.stopped()), (0, None));
}

#[tokio::test]
async fn of_two_attempts_at_one_task_the_one_under_the_old_token_is_stopped() {
    let worker = Stepped::new("heartbeat-old-token").await;
    let old = worker.take_in(worker.claim(1).await);
    // This is the state after a release by this worker whose answer was lost.
    let given = Release { lease: old.lease.clone(), give: Give::Head };
    let (broker, queue) = (&worker.shared.broker, worker.queue());
    let call = broker.release_call(&queue.name, &queue.worker(), &[given]);
    assert!(broker.report(call).await.unwrap().stale.is_empty());
    let new = worker.take_in(worker.claim(2).await);
    assert_eq!(old.lease.id, new.lease.id);

    assert!(worker.beats().await);
    assert_eq!(old.stopped().map(|(why, _)| why), Some(Stop::Lost));
    assert_eq!((new.stopped(), worker.reports()), (None, 0));
}

#[tokio::test]
async fn an_attempt_that_began_while_its_id_was_replaced_is_stopped_by_the_next_heartbeat() {
    let worker = Stepped::new("heartbeat-replaced").await;
    let (old, claimed) = (worker.queue().worker(), worker.claim(1).await);
    let (new, lease) =
        (crate::worker_start::new_worker_id(&worker.shared.config), worker.shared.config.lease);
    worker.queue().replace_worker(new, Instant::now(), lease);
    let attempt = worker.take_in_as(old, claimed);
    assert!(befores(&worker.shared)[0].attempts.is_empty());
    assert_eq!(attempt.stopped().map(|(why, _)| why), Some(Stop::Lost));
}

#[tokio::test]
async fn a_cancel_whose_message_was_lost_arrives_with_the_heartbeat() {
    let worker = Stepped::new("heartbeat-cancel").await;
    let attempt = worker.take_in(worker.claim(1).await);
    worker.shared.broker.cancel(&attempt.lease.id).await.unwrap();
    assert!(worker.beats().await);
    assert_eq!(attempt.stopped().map(|(why, _)| why), Some(Stop::Cancelled));
}

#[tokio::test]
async fn a_worker_that_is_no_longer_registered_continues_under_another_id() {
    let worker = Stepped::new("heartbeat-new-id").await;
    let old = worker.queue().worker();
    worker.shared.broker.leave(&worker.queue().name, &old).await.unwrap();
    assert!(worker.beats().await);
    assert_ne!(worker.queue().worker(), old);
    // A claim under the new id receives the same task.
    assert_eq!(worker.take_in(worker.claim(1).await).lease.worker, worker.queue().worker());
}

#[tokio::test]
async fn a_worker_that_redis_forgot_logs_once_what_it_held_in_all_queues() {
    let (events, seen) = std::sync::mpsc::channel::<LogEvent>();
    let events = std::sync::Mutex::new(events);
    let each = EachEvent::new(move |event| events.lock().unwrap().send(event).unwrap());
    let _heard = tracing::subscriber::set_default(each.at(tracing::Level::WARN));
    let worker = Stepped::serving("heartbeat-forgotten", &["default", "other"]).await;
    let attempt = worker.take_in(worker.claim(1).await);
    let old: Vec<WorkerId> = worker.shared.queues.iter().map(Served::worker).collect();
    for (queue, id) in worker.shared.queues.iter().zip(&old) {
        let given = Release { lease: attempt.lease.clone(), give: Give::Head };
        let call = worker.shared.broker.release_call(&queue.name, id, &[given]);
        worker.shared.broker.report(call).await.unwrap();
        worker.shared.broker.leave(&queue.name, id).await.unwrap();
    }

    // Only the queue in which nothing is held has a heartbeat now.
    let answers = worker.heartbeat.beat(&[1]).await;
    assert!(answers.len() == 2 && answers.iter().all(|(_, answer)| answer.is_ok()));
    for (queue, old) in worker.shared.queues.iter().zip(old) {
        assert_ne!(queue.worker(), old);
    }
    worker.shared.log.flush(Duration::from_secs(20)).await;
    let lapsed: Vec<_> = seen.try_iter().filter(|e| e.message().contains("no longer")).collect();
    assert_eq!(lapsed.len(), 1, "{lapsed:?}");
    let counts = ["queues", "held", "queue"].map(|field| lapsed[0].get(field));
    assert_eq!(counts, ["2", "1", "default"]);
}

#[tokio::test]
async fn queues_that_lose_their_leases_one_after_another_share_the_new_id() {
    let worker = Stepped::serving("heartbeat-shared-id", &["default", "other"]).await;
    let ids = || [0, 1].map(|at: usize| worker.shared.queues[at].worker());
    let loses = async |at: usize| {
        let queue = &worker.shared.queues[at];
        worker.shared.broker.leave(&queue.name, &queue.worker()).await.unwrap();
        worker.heartbeat.beat(&[at]).await;
    };
    let [first, _] = ids();
    loses(0).await;
    let [second, still_first] = ids();
    assert!(second != first && still_first == first);
    loses(1).await;
    assert_eq!(ids(), [second.clone(), second.clone()]);
    // No queue has an id twice.
    loses(1).await;
    let [still_second, third] = ids();
    assert!(still_second == second && third != second && third != first);
    loses(0).await;
    assert_eq!(ids(), [third.clone(), third]);
}

#[test]
fn a_slow_heartbeat_for_thousands_of_tasks_advises_to_run_fewer() {
    assert!(advice(MANY_HELD).contains("fewer tasks") && !advice(MANY_HELD).contains("SLOWLOG"));
    assert!(advice(MANY_HELD - 1).contains("SLOWLOG") && !advice(0).contains("fewer tasks"));
}
