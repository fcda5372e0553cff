//! Calls that tests of groups make.

use optimus_core::{
    After, Lease, Member, MemberResult, PrerequisiteFailure,
    PrerequisiteFailure::Wait,
    Submission, TaskId, TaskRecord, TaskState, WorkerId,
    broker::{Completion, Enroll, Enrolled},
};

use crate::{
    acts::{Grants, done, keep, ms},
    after::{after, or},
    bench::Bench,
    jobs::{job, job_of, ready_at},
};

pub(crate) const KEEP_MS: u64 = 3_600_000;

/// How long dead tasks are kept.
pub(crate) const DEAD_AGE_MS: u64 = 4 * KEEP_MS;

pub(crate) fn worker() -> WorkerId {
    WorkerId::from_stored("w")
}

pub(crate) fn new_group(bench: &Bench) -> TaskId {
    TaskId::new(bench.queue.clone())
}

pub(crate) fn member(group: &TaskId, index: u32, on_failure: PrerequisiteFailure) -> Member {
    Member { group: group.clone(), index, on_failure }
}

/// A report of the success of a member.
pub(crate) fn counted(lease: &Lease, group: &TaskId, index: u32, result: &str) -> Completion {
    Completion {
        member: Some(member(group, index, Wait)),
        result: Some((result.into(), ms(0))),
        ..done(lease)
    }
}

impl Bench {
    /// Purges the queue, which keeps dead tasks for this time.
    pub(crate) async fn purge_groups(&self, at: u64, age_ms: u64) {
        let ledgers_idle = ms(u64::MAX >> 12);
        self.at(at).purge(&self.queue, keep(9, ms(age_ms)), ledgers_idle).await.expect("it runs");
    }

    /// Adds members to a group.
    pub(crate) async fn enroll(&self, at: u64, group: &TaskId, name: &str, count: u32) -> Enrolled {
        self.enroll_or_seal(at, group, name, count, false).await
    }

    pub(crate) async fn enroll_or_seal(
        &self,
        at: u64,
        group: &TaskId,
        operation: &str,
        count: u32,
        seal: bool,
    ) -> Enrolled {
        let queues = std::slice::from_ref(&self.queue);
        let keep = Some(ms(KEEP_MS));
        let (on_failure, digest, submit, is_later) = (Wait, "", "", false);
        let members =
            Enroll { operation, count, queues, seal, keep, on_failure, digest, submit, is_later };
        self.at(at).enroll(group, members).await.expect("it is not refused")
    }

    /// Creates a sealed group of tasks of this queue.
    pub(crate) async fn grouped(&self, count: u32, policy: PrerequisiteFailure) -> TaskId {
        let group = new_group(self);
        self.enroll_or_seal(0, &group, "all", count, true).await;
        let tasks: Vec<_> = (0..count).map(|index| self.member(&group, index, policy)).collect();
        self.submit(0, &tasks).await;
        group
    }

    pub(crate) fn member(
        &self,
        group: &TaskId,
        index: u32,
        policy: PrerequisiteFailure,
    ) -> Submission {
        let id = Member::id(group, &self.queue, index);
        let task = ready_at(0, job().queue(&self.queue)).with_id(id);
        task.member_of(member(group, index, policy))
    }

    /// Submits a task that takes the results of a group, with a policy.
    pub(crate) async fn callback(&self, group: &TaskId, policy: PrerequisiteFailure) -> TaskId {
        let wait: After = or(policy, after(group)).taking("]");
        let task = ready_at(0, job_of("[]").queue(&self.queue)).waiting_for(wait);
        let id = task.id().clone();
        self.submit(0, &[task]).await;
        id
    }

    pub(crate) async fn progress(&self, group: &TaskId) -> [u32; 5] {
        let found = self.now().group(group).await.unwrap().expect("the group is known");
        [found.total, found.done, found.failed, found.cancelled, found.lost]
    }

    pub(crate) async fn ended(&self, group: &TaskId) -> Option<TaskState> {
        self.now().group(group).await.unwrap().expect("the group is known").ended
    }

    pub(crate) async fn results(&self, group: &TaskId, count: u32) -> Vec<MemberResult> {
        self.now().group_results(group, 0, count).await.unwrap()
    }

    /// Claims tasks, which have the positions from `first`, and lets them return their positions.
    pub(crate) async fn succeed(&self, at: u64, seq: u64, group: &TaskId, first: u32, want: usize) {
        let claimed = self.claim(at, &worker(), seq, want).await;
        let reports: Vec<_> = (first..)
            .zip(claimed.leases(&worker()))
            .map(|(index, lease)| counted(&lease, group, index, &index.to_string()))
            .collect();
        assert_eq!(reports.len(), want);
        assert!(self.complete(at, &reports).await.is_empty());
    }

    /// Claims the next task, and returns the arguments that its worker finds.
    pub(crate) async fn arguments(&self, at: u64, seq: u64) -> String {
        let mut claimed = self.claim(at, &worker(), seq, 1).await;
        let grant = claimed.grants.pop().expect("a task is ready");
        String::from_utf8(TaskRecord::decode(grant.record).unwrap().payload).unwrap()
    }
}

pub(crate) fn value(text: &str) -> MemberResult {
    MemberResult::Value(text.into())
}

pub(crate) fn handle(group: &TaskId, total: u32, failed: u32, cancelled: u32) -> String {
    let name = format!("{}/{}", group.queue(), group.stored());
    let counts = format!("\"total\":{total},\"failed\":{failed},\"cancelled\":{cancelled}");
    format!("[]{{\"$group\":\"{name}\",{counts}}}]")
}
