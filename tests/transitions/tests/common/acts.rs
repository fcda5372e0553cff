//! The actions of nearly every test: submit, register, claim, report. Times are in ms after the
//! start.

use std::time::Duration;

use optimus_core::{
    Lease, Submission, Submit, TaskId, TaskState, Token, WorkerId,
    broker::{
        Batch, BrokerError, Claimed, Completion, Failure, FailureOutcome, Give, Grant, Keep,
        LEDGER_SLOTS, Receipt, Refusal, Release,
    },
};

use crate::{
    bench::{Bench, START},
    jobs::{ready, ready_at},
};

/// The default lease of workers.
pub(crate) const LEASE: Duration = Duration::from_secs(15);

/// The default lease in ms.
pub(crate) const LEASE_MS: u64 = 15_000;

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Limits for a purge: it keeps at most this many dead tasks and as many cancelled tasks, of any
/// size, up to this age.
pub(crate) fn keep(tasks: usize, age: Duration) -> Keep {
    Keep { tasks, recent: Duration::ZERO, bytes: u64::from(u32::MAX), age }
}

impl Bench {
    /// Submits tasks in one call.
    pub(crate) async fn submit(&self, at: u64, tasks: &[Submission]) -> Vec<Receipt> {
        let number = self.next_number();
        self.send(at, number, tasks).await.expect("this submit is not refused")
    }

    /// Submits tasks in the call of this number.
    pub(crate) async fn send(
        &self,
        at: u64,
        number: u64,
        tasks: &[Submission],
    ) -> Result<Vec<Receipt>, BrokerError> {
        let batch = Batch {
            queue: &self.queue,
            client: "c1",
            number,
            since: number.saturating_sub(LEDGER_SLOTS),
            keep: false,
            tasks,
        };
        Ok(self.at(at).submit(&batch).await?.receipts)
    }

    /// Submits one task, whose biz id must be free.
    pub(crate) async fn add(&self, at: u64, call: impl Submit) -> TaskId {
        let task = ready_at(at, call);
        let id = task.id().clone();
        assert_eq!(self.submit(at, &[task]).await, [Receipt::Created]);
        id
    }

    /// Submits one task; returns the owner of its biz id, if the biz id is taken.
    pub(crate) async fn duplicate_of(&self, at: u64, call: impl Submit) -> Option<TaskId> {
        match self.submit(at, &[ready(call)]).await.remove(0) {
            Receipt::Created => None,
            Receipt::Duplicate(owner) => Some(owner),
            Receipt::WaitsForItself(path) => panic!("it waits for itself: {path:?}"),
        }
    }

    /// Registers a worker.
    pub(crate) async fn worker(&self, at: u64, name: &str) -> WorkerId {
        self.worker_for(at, name, LEASE).await
    }

    /// Registers a worker under a lease of this length.
    pub(crate) async fn worker_for(&self, at: u64, name: &str, lease: Duration) -> WorkerId {
        let worker = WorkerId::from_stored(name);
        self.at(at).register(&self.queue, &worker, lease, "{}").await.expect("a worker registers");
        worker
    }

    /// Claims tasks. The claim must not be refused.
    pub(crate) async fn claim(&self, at: u64, worker: &WorkerId, seq: u64, want: usize) -> Claimed {
        self.at(at).claim(&self.queue, worker, seq, want).await.expect("this claim is not refused")
    }

    /// Claims one task, which must exist.
    pub(crate) async fn take(&self, at: u64, worker: &WorkerId, seq: u64) -> Lease {
        let claimed = self.claim(at, worker, seq, 1).await;
        claimed.leases(worker).pop().expect("there is a task to claim")
    }

    /// Repeats a claim; returns the ids of its answer.
    pub(crate) async fn take_again(&self, at: u64, worker: &WorkerId, seq: u64) -> Vec<TaskId> {
        self.claim(at, worker, seq, 1).await.ids()
    }

    /// Reports successes; returns the positions that were refused.
    pub(crate) async fn complete(&self, at: u64, done: &[Completion]) -> Vec<usize> {
        let broker = self.at(at);
        let call = broker.complete_call(&self.queue, &done[0].lease.worker, done);
        broker.report(call).await.expect("a report is answered").stale
    }

    /// Reports failures; returns the positions that were refused.
    pub(crate) async fn fail(&self, at: u64, failed: &[Failure]) -> Vec<usize> {
        let broker = self.at(at);
        let call = broker.fail_call(&self.queue, &failed[0].lease.worker, failed);
        broker.report(call).await.expect("a report is answered").stale
    }

    /// Gives tasks back; returns the positions that were refused.
    pub(crate) async fn release(&self, at: u64, given: &[Release]) -> Vec<usize> {
        let broker = self.at(at);
        let call = broker.release_call(&self.queue, &given[0].lease.worker, given);
        broker.report(call).await.expect("a report is answered").stale
    }

    /// Returns the state of a task.
    pub(crate) async fn state(&self, id: &TaskId) -> TaskState {
        self.now().inspect(id).await.expect("a task can be inspected").state
    }

    /// Failures, losses and misfits of a task.
    pub(crate) async fn tries(&self, id: &TaskId) -> (u32, u32, u32) {
        self.now().inspect(id).await.expect("a task can be inspected").tries
    }

    /// Makes a client wait for a task's end.
    pub(crate) async fn wait(&self, id: &TaskId, client: &str) {
        let end = self.now().wait_for_end(id, client, None).await.expect("a client may wait");
        assert_eq!(end, None, "{id} has ended");
    }

    /// Returns the completion messages of a client, in order.
    pub(crate) async fn completions(&self, client: &str) -> Vec<String> {
        self.list(&format!("completions:{client}")).await
    }

    /// Returns the ids of the entries in the ready list, tombstones included.
    pub(crate) async fn ready_list(&self) -> Vec<String> {
        let entries = self.list("ready").await;
        entries.iter().map(|entry| entry[entry.len() - 22..].to_owned()).collect()
    }

    /// Takes the wakeup list's token, as a waiter does when it wakes.
    pub(crate) async fn answer_wakeup(&self) -> bool {
        let token: Option<String> = self.raw(redis::cmd("LPOP").arg(self.key("wake"))).await;
        token.is_some()
    }
}

/// The parts of a claim's answer that tests check.
pub(crate) trait Grants {
    /// Returns the granted ids, in the order of the answer.
    fn ids(&self) -> Vec<TaskId>;
    /// Returns the leases on the granted tasks.
    fn leases(&self, worker: &WorkerId) -> Vec<Lease>;
}

impl Grants for Claimed {
    fn ids(&self) -> Vec<TaskId> {
        self.grants.iter().map(|grant| grant.id.clone()).collect()
    }

    fn leases(&self, worker: &WorkerId) -> Vec<Lease> {
        let lease = |Grant { id, .. }: &Grant| lease(id, worker, self.token);
        self.grants.iter().map(lease).collect()
    }
}

pub(crate) fn lease(id: &TaskId, worker: &WorkerId, token: Token) -> Lease {
    Lease { id: id.clone(), worker: worker.clone(), token }
}

/// Returns the ids of submissions.
pub(crate) fn ids_of(tasks: &[Submission]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id().clone()).collect()
}

/// Returns a report of success, without result and biz id.
pub(crate) fn done(lease: &Lease) -> Completion {
    Completion {
        lease: lease.clone(),
        task: "job",
        biz_id: None,
        attempt: 1,
        took: ms(5),
        ended_ms: START + 7,
        lane: None,
        outcome_ttl: None,
        member: None,
        result: None,
        has_sides: true,
    }
}

/// Returns a report of success of the job with this biz id.
pub(crate) fn done_biz(lease: &Lease, biz_id: &str) -> Completion {
    Completion { biz_id: Some(biz_id.into()), ..done(lease) }
}

/// Returns a report of failure.
pub(crate) fn failed(lease: &Lease, outcome: FailureOutcome) -> Failure {
    Failure { lease: lease.clone(), outcome, shut: None, error: r#"{"reason":"failed"}"#.into() }
}

/// Returns a report that gives a task back.
pub(crate) fn given(lease: &Lease, give: Give) -> Release {
    Release { lease: lease.clone(), give }
}

/// Returns the refusal of a call that must be refused.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, BrokerError>) -> Refusal {
    let problem = answer.expect_err("this call is refused");
    problem.refusal().unwrap_or_else(|| panic!("not refused but {problem:?}"))
}
