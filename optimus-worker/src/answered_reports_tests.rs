//! Reports that Redis accepts, refuses, or may have accepted before.

use std::{iter, sync::Mutex};

use optimus_core::{
    Client, Context, Layer, Lease, Task,
    broker::{BrokerError, Claimed, Give, Release},
};
use tracing::Level;

use super::*;
use crate::{
    Worker,
    decide_outcome::{Decision, Report},
    prepare::{Claim, prepare},
    reporter::take_in_reports,
    tally::Counts,
    test_worker::{Nothing, idle_worker},
};

/// A layer that keeps the outcomes that it hears.
#[derive(Clone, Default)]
struct Hears(Arc<Mutex<Vec<String>>>);

impl Layer for Hears {
    async fn ended(&self, _: &Context, end: &optimus_core::End) {
        self.0.lock().unwrap().push(format!("{:?}", end.outcome));
    }
}

/// A worker with an attempt that has succeeded. The report of the attempt is not sent yet.
struct Held {
    shared: Arc<Shared>,
    lease: Lease,
}

impl Held {
    async fn new(name: &str) -> Self {
        let (client, shared) = idle_worker(name).await;
        Self::of(&client, shared).await
    }

    /// The same, on a worker with this layer, which hears of the end of the attempt.
    async fn layered(name: &str, layer: Hears) -> Self {
        let url = format!("memory://{name}");
        let client = Client::builder(&url).connect().await.unwrap();
        let worker = Worker::builder(&url).quiet().only_named_tasks().task_type::<Nothing>();
        let shared = worker.layer(layer).build().unwrap().idle_worker().await;
        Self::of(&client, shared).await
    }

    async fn of(client: &Client, shared: Arc<Shared>) -> Self {
        client.submit(Nothing {}.call()).await.unwrap();
        let (queue, broker) = (&shared.queues[0], &shared.broker);
        let claimed = broker.claim(&queue.name, &queue.worker(), 1, 1).await.unwrap();
        let Claimed { token, now_ms, mut grants, .. } = claimed;
        let grant = grants.remove(0);
        let lease = Lease { id: grant.id, worker: queue.worker(), token };
        let claim = Claim {
            lease: lease.clone(),
            record: grant.record,
            tries: grant.tries,
            was_tried: grant.was_tried,
            start_by: grant.start_by,
            now_ms,
            alone: false,
        };
        let attempt = prepare(&shared, claim, shared.slots.take(0).unwrap()).unwrap().attempt;
        shared.attempts.insert(std::iter::once(&attempt));
        assert!(attempt.settle());
        attempt.set_ended(Outcome::Success(Level::DEBUG));
        let held = Self { shared, lease };
        let decision = Decision::from(held.report());
        layer_ended::start(&held.shared, &attempt, Some(&decision));
        held.shared.reporter.push(held.report());
        held
    }

    fn report(&self) -> Report {
        Report::Release(Release { lease: self.lease.clone(), give: Give::Head })
    }

    /// Ends the lease.
    async fn lose(&self) {
        let Self { shared, lease } = self;
        let release = Release { lease: lease.clone(), give: Give::Head };
        let call = shared.broker.release_call(lease.id.queue(), &lease.worker, &[&release]);
        assert!(shared.broker.report(call).await.unwrap().stale.is_empty());
    }

    /// Sends the report and processes this answer.
    fn fails(&self, problem: BrokerError) {
        let batches = self.shared.reporter.take(1);
        assert_eq!(batches.len(), 1);
        let is_answered = take_in_reports(&self.shared, batches, &mut iter::once(Err(problem)));
        assert!(!is_answered && self.shared.reporter.len() == 1);
    }

    /// Returns the outcomes that are counted after the answer of Redis.
    async fn counts(&self) -> Counts {
        let shared = &self.shared;
        assert!(shared.tally.take().is_empty(), "the attempt was counted before the answer");
        let batches = shared.reporter.take(1);
        let calls = batches.iter().map(|batch| batch.call(&shared.broker)).collect();
        let mut answers = shared.broker.run_all(calls).await.into_iter();
        assert!(take_in_reports(shared, batches, &mut answers));
        assert!(shared.attempts.is_empty() && shared.reporter.len() == 0);
        shared.tally.take()
    }
}

#[tokio::test]
async fn an_attempt_counts_with_its_outcome_once_redis_has_taken_its_report() {
    let held = Held::new("report-taken").await;
    assert_eq!(held.counts().await, Counts { success: 1, ..Counts::default() });
}

#[tokio::test]
async fn an_attempt_whose_report_redis_refuses_counts_as_stale() {
    let held = Held::new("report-refused").await;
    held.lose().await;
    assert_eq!(held.counts().await, Counts { stale: 1, ..Counts::default() });
}

#[tokio::test]
async fn a_report_that_came_twice_does_not_count_as_refused() {
    let held = Held::new("report-twice").await;
    // Redis has accepted the report, and the answer is lost.
    held.lose().await;
    held.fails(BrokerError::Unknown("the connection broke".into()));
    assert_eq!(held.counts().await, Counts { success: 1, ..Counts::default() });
}

#[tokio::test]
async fn a_report_that_could_not_be_sent_at_first_and_is_refused_then_counts_as_stale() {
    let held = Held::new("report-not-sent").await;
    held.fails(BrokerError::NotDone("no connection".into()));
    held.lose().await;
    assert_eq!(held.counts().await, Counts { stale: 1, ..Counts::default() });
}

#[tokio::test]
async fn an_attempt_whose_report_is_not_answered_is_logged_at_the_end_of_the_worker() {
    let held = Held::new("report-unanswered").await;
    log_unanswered(&held.shared);
    assert_eq!(held.shared.tally.take(), Counts { unanswered: 1, ..Counts::default() });
}

#[tokio::test]
async fn an_attempt_counts_as_cancelled_if_redis_was_asked_to_stop_its_task_before_the_report() {
    let held = Held::new("report-cancelled").await;
    held.shared.broker.cancel(&held.lease.id).await.unwrap();
    assert_eq!(held.counts().await, Counts { cancelled: 1, ..Counts::default() });
}

#[tokio::test]
async fn layers_hear_what_redis_did_with_the_report() {
    for (name, expected) in
        [("heard-taken", "GivenBack"), ("heard-cancelled", "Cancelled"), ("heard-stale", "Stale")]
    {
        let heard = Hears::default();
        let held = Held::layered(name, heard.clone()).await;
        let attempt = held.shared.attempts.of(&held.lease).unwrap();
        match expected {
            "Cancelled" => drop(held.shared.broker.cancel(&held.lease.id).await.unwrap()),
            "Stale" => held.lose().await,
            _ => {}
        }
        held.counts().await;
        layer_ended::finish(&held.shared, &attempt).await;
        assert_eq!(*heard.0.lock().unwrap(), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn layers_hear_what_was_reported_if_redis_does_not_answer() {
    let heard = Hears::default();
    let held = Held::layered("heard-unanswered", heard.clone()).await;
    let attempt = held.shared.attempts.of(&held.lease).unwrap();
    layer_ended::finish(&held.shared, &attempt).await;
    assert_eq!(*heard.0.lock().unwrap(), ["GivenBack"]);
}
