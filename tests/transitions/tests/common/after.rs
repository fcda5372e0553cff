//! Tasks that wait for others, and relays.

use optimus_core::{
    After, Lease, Prerequisite, PrerequisiteFailure, Submission, Submit, TaskId,
    broker::{Completion, RelayTurn},
};

use crate::{
    acts::{done, done_biz, ms},
    bench::Bench,
    jobs::ready_at,
};

/// How long successes are remembered in tests, in ms.
pub(crate) const REMEMBERED_MS: u64 = 600_000;

/// The wait for a task by its id.
pub(crate) fn after(id: &TaskId) -> After {
    After::new([Prerequisite::Task(id.clone())])
}

/// The job with this biz id in the queue of the bench.
pub(crate) fn keyed(bench: &Bench, biz_id: &str) -> Prerequisite {
    let queue = bench.queue.clone();
    Prerequisite::Key { queue, task: "job".into(), biz_id: biz_id.into() }
}

/// The same wait with another policy.
pub(crate) fn or(on_failure: PrerequisiteFailure, mut after: After) -> After {
    after.on_failure = on_failure;
    after
}

/// A call that waits.
pub(crate) fn waiting(call: impl Submit, after: After) -> Submission {
    ready_at(0, call).waiting_for(after)
}

/// A report of the success of a task that is remembered.
pub(crate) fn remembered(report: Completion) -> Completion {
    Completion { outcome_ttl: Some(ms(REMEMBERED_MS)), ..report }
}

/// A report of the success of the job with this biz id.
pub(crate) fn done_as(lease: &Lease, biz_id: &str) -> Completion {
    done_biz(lease, biz_id)
}

impl Bench {
    /// Submits one task that waits.
    pub(crate) async fn add_after(&self, at: u64, call: impl Submit, after: After) -> TaskId {
        let task = ready_at(at, call).waiting_for(after);
        let id = task.id().clone();
        self.submit(at, &[task]).await;
        id
    }

    /// Lets a relay carry the effects of this queue.
    pub(crate) async fn relay(&self, at: u64) -> RelayTurn {
        self.at(at).relay(&self.queue).await.expect("a relay works")
    }

    /// Relays until nothing is left. Returns the number of turns.
    pub(crate) async fn relay_all(&self, at: u64) -> usize {
        for turns in 1.. {
            let turn = self.relay(at).await;
            assert!(turn.failed.is_empty(), "{:?}", turn.failed);
            if turn.moved == 0 && !turn.more {
                return turns;
            }
        }
        unreachable!("a relay comes to an end")
    }

    /// Claims all ready tasks, and reports their success.
    pub(crate) async fn run_all(
        &self,
        at: u64,
        worker: &optimus_core::WorkerId,
        seq: u64,
    ) -> Vec<TaskId> {
        use crate::acts::Grants;
        let claimed = self.claim(at, worker, seq, 128).await;
        let reports: Vec<_> = claimed.leases(worker).iter().map(done).collect();
        if !reports.is_empty() {
            assert!(self.complete(at, &reports).await.is_empty());
        }
        claimed.ids()
    }

    /// Fails unless no task waits for another and nothing is left to relay.
    pub(crate) async fn assert_nobody_waits(&self) {
        let left = self.names().await;
        let kinds = ["ties", "after:", "asks", "giveups", "outbox"];
        let waits =
            |name: &&String| *name == "unmet" || kinds.iter().any(|kind| name.starts_with(kind));
        let waits: Vec<_> = left.iter().filter(waits).collect();
        assert!(waits.is_empty(), "{waits:?}");
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }
}
