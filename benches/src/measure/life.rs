//! The life of tasks as a broker sees it: submits, claims and reports of completions, each of the
//! same number of tasks, up to a stage.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use optimus_core::broker::{
    Batch, Broker, Completion, Enroll, Failure, FailureOutcome, LEDGER_SLOTS,
};
use optimus_core::{
    After, Lane, Lease, Member, Prerequisite, PrerequisiteFailure, Submission, TaskId, WorkerId,
};

use super::plain;

const LEASE: Duration = Duration::from_secs(3_600);

/// The last step of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Stage {
    Start,
    Submit,
    /// Every task is claimed before the first one ends.
    Claim,
    /// The tasks of each claim are reported before the next claim.
    Complete,
}

/// A task, and what its report states apart from its end.
pub(super) struct Made {
    task: Submission,
    lane: Option<Lane>,
    member: Option<Member>,
}

impl Made {
    /// Makes a task whose report states nothing else.
    pub(super) fn plain(task: Submission) -> Self {
        Self { task, lane: None, member: None }
    }

    pub(super) fn of_lane(task: Submission, lane: Lane) -> Self {
        Self { task: task.in_lane(lane.clone()), lane: Some(lane), member: None }
    }

    pub(super) fn of_group(task: Submission, member: Member) -> Self {
        Self { task: task.enlisted(member.clone()), lane: None, member: Some(member) }
    }
}

/// How the tasks of a call reach their worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Taken {
    /// A claim takes all of them.
    Claimed,
    /// A claim takes the first one, which leads a run, and a collect takes the others.
    Gathered,
    /// A claim takes all of them. The first attempt of each fails, and its next one is due at once.
    FailedOnce,
}

/// The error of an attempt that fails.
const ERROR: &str = r#"{"attempt":1,"reason":"failed","message":"the first attempt fails"}"#;

/// The number of calls, and of the tasks of each call.
pub(super) struct Life<'a> {
    pub(super) broker: Broker,
    pub(super) calls: usize,
    pub(super) batch: usize,
    pub(super) taken: Taken,
    /// Makes the task with this number.
    pub(super) make: &'a mut dyn FnMut(usize) -> anyhow::Result<Made>,
}

impl Life<'_> {
    pub(super) async fn up_to(self, stage: Stage) -> anyhow::Result<()> {
        let Self { broker, calls, batch, taken, make } = self;
        let queue = plain::queue()?;
        let worker = WorkerId::from_stored("worker");
        broker.register(&queue, &worker, LEASE, "{}").await?;
        let mut states: HashMap<TaskId, (Option<Lane>, Option<Member>)> = HashMap::new();
        for call in 0..calls * usize::from(stage >= Stage::Submit) {
            let mut tasks = Vec::new();
            for at in 0..batch {
                let Made { task, lane, member } = make(call * batch + at)?;
                if let Some(first) = member.as_ref().filter(|member| member.index == 0) {
                    enroll(&broker, &first.group, calls * batch).await?;
                }
                states.insert(task.id().clone(), (lane, member));
                tasks.push(task);
            }
            submit(&broker, call as u64 + 1, &tasks).await?;
        }
        let attempts = 1 + usize::from(taken == Taken::FailedOnce);
        for call in 0..attempts * calls * usize::from(stage >= Stage::Claim) {
            let seq = call as u64 + 1;
            let (leases, now_ms) = match taken {
                Taken::Claimed | Taken::FailedOnce => claim(&broker, &worker, seq, batch).await?,
                Taken::Gathered => gather(&broker, &worker, seq, batch).await?,
            };
            ensure!(leases.len() == batch, "a claim was not filled");
            if stage < Stage::Complete {
                continue;
            }
            let has_failed = taken == Taken::FailedOnce && call >= calls;
            if taken == Taken::FailedOnce && !has_failed {
                fail(&broker, &worker, leases).await?;
                continue;
            }
            let done: Vec<Completion> = leases
                .into_iter()
                .map(|lease| {
                    let (lane, member) = states.remove(&lease.id).unwrap_or_default();
                    let has_sides = has_failed;
                    Completion { lane, member, has_sides, ..plain::completion(lease, now_ms) }
                })
                .collect();
            let refused = broker.report(broker.complete_call(&queue, &worker, &done)).await?;
            ensure!(refused.stale.is_empty(), "a report was refused");
        }
        Ok(())
    }
}

/// Opens a group of one more task than there are, so that it never ends, and a task that waits for
/// it. A life has one group, so this costs each of its tasks almost nothing.
async fn enroll(broker: &Broker, group: &TaskId, tasks: usize) -> anyhow::Result<()> {
    let members = Enroll {
        operation: "all",
        count: u32::try_from(tasks)? + 1,
        queues: &[plain::queue()?],
        seal: true,
        keep: Some(LEASE),
        on_failure: PrerequisiteFailure::default(),
        digest: "",
        submit: "",
        is_later: false,
    };
    broker.enroll(group, members).await?;
    let callback =
        plain::submission()?.waiting_for(After::new([Prerequisite::Task(group.clone())]));
    submit(broker, CALLBACK, &[callback]).await
}

/// The number of the call that submits the callback of a group. It has a ledger of its own.
const CALLBACK: u64 = 0;

async fn submit(broker: &Broker, number: u64, tasks: &[Submission]) -> anyhow::Result<()> {
    let batch = Batch {
        queue: &plain::queue()?,
        client: if number == CALLBACK { "callbacks" } else { "client" },
        number,
        since: number.saturating_sub(LEDGER_SLOTS),
        keep: false,
        tasks,
    };
    broker.submit(&batch).await?;
    Ok(())
}

/// Reports that these attempts failed. The next attempts are due at once, and the tasks that are
/// ready already come before them.
async fn fail(broker: &Broker, worker: &WorkerId, leases: Vec<Lease>) -> anyhow::Result<()> {
    let (outcome, error) = (FailureOutcome::Retry(Duration::ZERO), ERROR.to_owned());
    let failure = |lease| Failure { lease, outcome, shut: None, error: error.clone() };
    let failures: Vec<_> = leases.into_iter().map(failure).collect();
    let refused = broker.report(broker.fail_call(&plain::queue()?, worker, &failures)).await?;
    ensure!(refused.stale.is_empty(), "a report was refused");
    Ok(())
}

/// Returns the leases of a claim, and the time of Redis.
async fn claim(
    broker: &Broker,
    worker: &WorkerId,
    seq: u64,
    want: usize,
) -> anyhow::Result<(Vec<Lease>, u64)> {
    let claim = broker.claim(&plain::queue()?, worker, seq, want).await?;
    Ok((plain::leases(&claim, worker).collect(), claim.now_ms))
}

/// Returns the leases of a run, and the time of Redis.
async fn gather(
    broker: &Broker,
    worker: &WorkerId,
    seq: u64,
    run: usize,
) -> anyhow::Result<(Vec<Lease>, u64)> {
    let (mut leases, now_ms) = claim(broker, worker, seq, 1).await?;
    let leader = leases.first().context("no run is due")?.clone();
    let collected = broker.collect(&leader, run - 1).await?.context("the leader is held")?;
    ensure!(!collected.more, "one call collects the run");
    leases.extend(collected.grants.into_iter().map(|grant| Lease {
        id: grant.id,
        worker: worker.clone(),
        token: collected.token,
    }));
    Ok((leases, now_ms))
}
