//! Tasks that run together, and what a key has.

pub(crate) use optimus_core::Gather;
use optimus_core::{Lease, Submission, Submit, TaskId, WorkerId, broker::Collected};
use redis::cmd;

use crate::{
    acts::{Grants, lease, ms},
    bench::{Bench, START},
    jobs::{job, ready_at},
};

/// Tasks of this key run together, 10 s after the first, or when there are three.
pub(crate) fn three_of(key: &str) -> Gather {
    Gather { by: key.into(), wait: ms(10_000), max: 3 }
}

/// Tasks of this key run together 10 s after the first, however many there are.
pub(crate) fn many_of(key: &str) -> Gather {
    Gather { max: 1_000, ..three_of(key) }
}

/// Plain jobs that run together, as a client sends them.
pub(crate) fn gathered(at: u64, count: usize, gather: &Gather) -> Vec<Submission> {
    (0..count).map(|_| ready_at(at, job()).gathered(gather.clone())).collect()
}

fn name_of(key: &str) -> String {
    if key.starts_with('#') { format!("job{key}") } else { format!("job:{key}") }
}

impl Bench {
    /// Submits a plain job that runs together with others.
    pub(crate) async fn add_gathered(&self, at: u64, gather: &Gather) -> TaskId {
        self.add_call_gathered(at, gather, job()).await
    }

    /// Submits a call that runs together with others.
    pub(crate) async fn add_call_gathered(
        &self,
        at: u64,
        gather: &Gather,
        call: impl Submit,
    ) -> TaskId {
        let task = ready_at(at, call).gathered(gather.clone());
        let id = task.id().clone();
        self.submit(at, &[task]).await;
        id
    }

    /// The tasks of a key with their scores, in ms after the start; -1 leads. A key such as
    /// `#1:0:a` has those that have failed once.
    pub(crate) async fn gathering(&self, key: &str) -> Vec<(String, i64)> {
        let key = self.key(&format!("gather:{}", name_of(key)));
        let found: Vec<(String, i64)> =
            self.raw(cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES")).await;
        let start = i64::try_from(START).expect("it is not late");
        found.into_iter().map(|(id, at)| (id, if at < 0 { at } else { at - start })).collect()
    }

    /// When the next run of a key is due, in ms after the start.
    pub(crate) async fn due_run(&self, key: &str) -> Option<u64> {
        Some(self.score("gathers", &name_of(key)).await? - START)
    }

    /// Fails unless the key has exactly these tasks with these scores, and is due then.
    pub(crate) async fn assert_gathering(
        &self,
        key: &str,
        expected: &[(&TaskId, i64)],
        due: Option<u64>,
    ) {
        let mut expected: Vec<_> = expected.iter().map(|(id, at)| (id.stored(), *at)).collect();
        expected.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        assert_eq!(self.gathering(key).await, expected, "the key {key:?}");
        assert_eq!(self.due_run(key).await, due, "the key {key:?} is due");
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }

    /// Collects for a run; the worker must hold the task that leads it.
    pub(crate) async fn collect(&self, at: u64, leader: &Lease, want: usize) -> Collected {
        let answer = self.at(at).collect(leader, want).await.expect("a collect is answered");
        answer.expect("the worker holds the leader")
    }

    /// Claims the task that leads a run, and collects the others: all leases of the run.
    pub(crate) async fn run_of(&self, at: u64, worker: &WorkerId, seq: u64) -> Vec<Lease> {
        let claimed = self.claim(at, worker, seq, 1).await.leases(worker);
        let leader = claimed.into_iter().next().expect("a run is due");
        let collected = self.collect(at, &leader, 128).await;
        let mut leases = vec![leader];
        leases.extend(collected.grants.iter().map(|g| lease(&g.id, worker, collected.token)));
        leases
    }
}
