//! The only worker of a queue, each of whose calls a scene chooses: [`Hand`].

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use optimus_core::broker::{Broker, Completion, Failure, FailureOutcome, Give, Grant, Release};
use optimus_core::{Call, Lease, QueueName, Submit, TaskId, TaskRecord, Token, WorkerId};

use super::Actor;
use super::steps::ms;
use crate::tasks::{Kind, Work};

/// No worker of the scene serves it.
pub(super) const APART: &str = "apart";
pub(super) const LONG: Duration = Duration::from_secs(1_000);

pub(super) struct Hand<'a> {
    pub(super) actor: &'a Actor,
    pub(super) broker: Broker,
    pub(super) queue: QueueName,
    pub(super) worker: WorkerId,
    seq: u64,
    /// The tasks that it has held.
    records: HashMap<TaskId, TaskRecord>,
    /// The tasks that were tried before.
    tried: HashSet<TaskId>,
}

impl<'a> Hand<'a> {
    pub(super) async fn new(actor: &'a Actor, name: &str, lease: Duration) -> Self {
        let queue = QueueName::new(APART).expect("the name of a queue");
        let (broker, worker) = (actor.user.client.broker().clone(), WorkerId::from_stored(name));
        drop(broker.register(&queue, &worker, lease, "{}").await);
        let (records, tried) = (HashMap::new(), HashSet::new());
        Self { actor, broker, queue, worker, seq: 0, records, tried }
    }

    /// Submits a task that ends at once.
    pub(super) async fn submit<S: Submit>(
        &self,
        change: impl FnOnce(Call<Work>) -> S,
    ) -> Option<TaskId> {
        let call = change(Work::new(0, Kind::Lasts(0)).queue(APART));
        Some(self.actor.user.client.submit(call).await.ok()?.id().clone())
    }

    pub(super) fn leases(&mut self, grants: &[Grant], token: Token) -> Vec<Lease> {
        for grant in grants {
            let record = TaskRecord::decode(grant.record.clone()).ok();
            self.records.extend(record.map(|record| (grant.id.clone(), record)));
            self.tried.extend(grant.was_tried.then(|| grant.id.clone()));
        }
        let worker = &self.worker;
        let lease = |grant: &Grant| Lease { id: grant.id.clone(), worker: worker.clone(), token };
        grants.iter().map(lease).collect()
    }

    pub(super) async fn claim(&mut self, want: usize) -> Vec<Lease> {
        self.seq += 1;
        let Ok(claimed) = self.broker.claim(&self.queue, &self.worker, self.seq, want).await else {
            return Vec::new();
        };
        self.leases(&claimed.grants, claimed.token)
    }

    /// Waits for the wakeup of the queue, so that none is left.
    pub(super) async fn take_wakeup(&self) {
        let broker = self.broker.blocking("the hand");
        let (queues, home) = ([self.queue.clone()], (&self.queue, &self.worker));
        drop(broker.wait_for_work(&queues, home, ms(10)).await);
    }

    pub(super) async fn complete(&self, run: &[Lease]) {
        let report = |lease: &Lease| Completion {
            lease: lease.clone(),
            task: "work",
            biz_id: self.records.get(&lease.id).and_then(|record| record.biz_id.clone()),
            attempt: 1,
            took: ms(1),
            ended_ms: 0,
            lane: self.records.get(&lease.id).and_then(|record| record.lane.clone()),
            outcome_ttl: self.records.get(&lease.id).and_then(|record| record.outcome_ttl),
            member: None,
            result: None,
            has_sides: self.tried.contains(&lease.id),
        };
        let reports: Vec<_> = run.iter().map(report).collect();
        if !reports.is_empty() {
            let call = self.broker.complete_call(&self.queue, &self.worker, &reports);
            drop(self.broker.report(call).await);
        }
    }

    pub(super) async fn fail(&self, run: &[Lease], outcome: FailureOutcome) {
        let report = |lease: &Lease| Failure {
            lease: lease.clone(),
            outcome,
            shut: None,
            error: "{}".into(),
        };
        let reports: Vec<_> = run.iter().map(report).collect();
        if !reports.is_empty() {
            let call = self.broker.fail_call(&self.queue, &self.worker, &reports);
            drop(self.broker.report(call).await);
        }
    }

    pub(super) async fn release(&self, run: &[Lease]) {
        let report = |lease: &Lease| Release { lease: lease.clone(), give: Give::Head };
        let reports: Vec<_> = run.iter().map(report).collect();
        if !reports.is_empty() {
            let call = self.broker.release_call(&self.queue, &self.worker, &reports);
            drop(self.broker.report(call).await);
        }
    }
}
