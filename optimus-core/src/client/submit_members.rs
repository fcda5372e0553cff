//! Submits the members of a group, a batch at a time.

use std::{collections::BTreeSet, iter::Peekable, time::Duration};

use tokio::time::Instant;

use super::{
    Client,
    batch_digest::{digest_of, digest_of_last},
    part_ids::part_id,
    submit_flow::{Link, Store, keep_outcomes, link},
};
use crate::{
    Error,
    after::PrerequisiteFailure,
    broker::{BrokerError, Enroll, Enrolled, PARTS},
    flow::Stage,
    group::{GroupProgress, Member, MemberResult},
    group_calls::GroupCalls,
    id::{QueueName, TaskId},
    options::TaskOptions,
    state::TaskState,
    step::Form,
    submission::{Submission, Trace},
};

/// How many members a batch has. Their arguments don't count, because those of a group that is
/// submitted again may have another size.
const MEMBERS_MAX: usize = 1000;

/// How long after an outage the group is enrolled again.
const ENROLL_AGAIN: Duration = Duration::from_millis(100);

/// A batch of members: the stages of each.
type Batch<'a> = Vec<Vec<Stage<'a>>>;

/// Returns the next members. The same calls make the same batches, so a group that is submitted
/// again finds its members.
fn next_batch<'a>(members: &mut Peekable<impl Iterator<Item = Vec<Stage<'a>>>>) -> Batch<'a> {
    members.by_ref().take(MEMBERS_MAX).collect()
}

impl Client {
    /// Cancels what was added to a group while it was cancelled.
    pub(super) async fn cancel_with(
        &self,
        group: &TaskId,
        progress: &GroupProgress,
    ) -> Result<(), Error> {
        // A member that failed does not cancel the others.
        if progress.ended == Some(TaskState::Cancelled)
            && self.broker().cancelled_by(group).await?.is_none()
        {
            self.cancel_members(group, progress).await?;
        }
        Ok(())
    }
}

impl Store<'_> {
    /// Stores the members of a group, a batch at a time, and then closes it. Returns its state if
    /// it has ended.
    pub(super) async fn members(
        &mut self,
        group: GroupCalls<'_>,
        id: &TaskId,
        former: Option<&TaskId>,
    ) -> Result<Option<TaskState>, Error> {
        self.later.add(id);
        let (form, policy) = (group.form, group.members_policy);
        let on_failure = group.on_failure.unwrap_or_default();
        let mut members = group.members.peekable();
        let keep = self.repeats.then_some(group.keep);
        let rules = Rules { group: id, former, form, policy, on_failure, keep };
        for number in 0_u32.. {
            let batch = next_batch(&mut members);
            let is_last = members.peek().is_none();
            let queues = queues_of(&batch);
            let digest = if is_last { digest_of_last(&batch) } else { digest_of(&batch) };
            let enroll = Enroll {
                operation: &number.to_string(),
                count: u32::try_from(batch.len()).expect("a small batch"),
                seal: is_last,
                keep: Some(group.keep),
                queues: &queues,
                on_failure,
                digest: &digest,
                submit: "",
                is_later: number > 0,
            };
            if !self.batch(batch, enroll, &rules).await? || is_last {
                break;
            }
        }
        let Some(progress) = self.client.broker().group(id).await? else { return Ok(None) };
        self.client.cancel_with(id, &progress).await?;
        Ok(progress.ended)
    }

    /// Stores one batch. Returns whether the group is still open for more.
    pub(super) async fn batch(
        &mut self,
        batch: Batch<'_>,
        enroll: Enroll<'_>,
        rules: &Rules<'_>,
    ) -> Result<bool, Error> {
        // A group does not end as long as one of its positions is empty.
        for stage in batch.iter().flatten() {
            if let Stage::Task(task) = stage {
                let submission = task.made.as_ref().map_err(Clone::clone)?;
                check(submission)?;
                self.client.check_one(submission)?;
            }
        }
        let awaited = self.later.check_members(&batch)?;
        self.later.check_stored(self.client, awaited).await?;
        if batch.iter().any(|stages| stages.len() > 1) {
            let parts = Enroll { operation: PARTS, count: 0, seal: false, digest: "", ..enroll };
            self.enroll(rules.group, parts).await?;
        }
        let (first, is_new, born) = match self.enroll(rules.group, enroll).await? {
            Enrolled::Added { first, is_new, born, .. } => (first, is_new, born),
            Enrolled::Ended(_) => return Ok(false),
            Enrolled::Other => return Err(other_calls(rules.group)),
            Enrolled::Gone => return Err(Error::forgotten(rules.group.clone())),
        };
        // The submit leaves out those that end after this look.
        let mut pending = vec![true; batch.len()];
        if !is_new && enroll.count > 0 {
            let broker = self.client.broker();
            let ends = broker.group_results(rules.group, first, enroll.count).await?;
            for (is_pending, end) in pending.iter_mut().zip(ends) {
                *is_pending = matches!(end, MemberResult::Pending);
            }
        }
        let mut tasks = Vec::with_capacity(batch.len());
        for ((index, stages), is_pending) in (first..).zip(batch).zip(pending) {
            if is_pending {
                self.member(stages, (index, born), rules, &mut tasks).await?;
            }
        }
        let (_, problem) = self.tasks(tasks.into_iter()).await;
        problem.map_or(Ok(true), Err)
    }

    /// Adds the tasks of the member at a position of a group, which was made at that time. A group
    /// within it is stored at once.
    async fn member(
        &mut self,
        mut stages: Vec<Stage<'_>>,
        (index, born): (u32, u64),
        rules: &Rules<'_>,
        tasks: &mut Vec<Submission>,
    ) -> Result<(), Error> {
        rules.begin(&mut stages);
        let count = stages.len();
        rules.name(&mut stages, index)?;
        let mut links = link(stages, rules.former.cloned())?;
        keep_outcomes(&mut links, rules.keep.unwrap_or_default());
        let (mark, mut cancelled, mut steps) = (self.later.mark(), None, Vec::new());
        for (place, mut link) in links.into_iter().enumerate().rev() {
            if let Some(group) = &cancelled {
                link.end_with(group)?;
            }
            match link {
                Link::Task(mut submission) => {
                    self.later.add_task(&submission);
                    submission.trace = Some(Trace::Outcome);
                    if place + 1 == count {
                        rules.enlist(&mut submission, index);
                        submission.trace = Some(Trace::Member { born });
                    }
                    steps.push(submission);
                }
                Link::Group { calls, id, former } => {
                    let ended = Box::pin(self.members(calls, &id, former.as_ref())).await?;
                    if ended == Some(TaskState::Cancelled) {
                        self.later.remove(&id);
                        cancelled = Some(id);
                    }
                }
            }
        }
        self.later.forget(mark);
        tasks.extend(steps.into_iter().rev());
        Ok(())
    }

    /// Enrolls members, and tries again while Redis can't be reached.
    async fn enroll(&mut self, group: &TaskId, enroll: Enroll<'_>) -> Result<Enrolled, Error> {
        let deadline = Instant::now() + self.client.0.submitter.timeout();
        loop {
            match self.client.broker().enroll(group, Enroll { submit: &self.name, ..enroll }).await
            {
                Ok(enrolled) => {
                    if let Enrolled::Added { first: 0, is_new: true, .. } = enrolled {
                        self.note_made(group);
                    }
                    if matches!(enrolled, Enrolled::Added { posted: true, .. }) {
                        self.client.carry(group.queue()).await;
                    }
                    return Ok(enrolled);
                }
                Err(problem) if is_final(&problem) || Instant::now() >= deadline => {
                    return Err(problem.into());
                }
                Err(_) => tokio::time::sleep(ENROLL_AGAIN).await,
            }
        }
    }
}

fn other_calls(group: &TaskId) -> Error {
    Error::invalid(format!(
        "the group {group} has other calls: another number of them, or calls of other tasks or \
         queues; submit the same calls again under the id of a group, and other calls under a new \
         id"
    ))
}

fn is_final(problem: &BrokerError) -> bool {
    !problem.is_transient()
}

/// Returns the queues of the last steps of members.
pub(super) fn queues_of(batch: &[Vec<Stage<'_>>]) -> Vec<QueueName> {
    let last = batch.iter().filter_map(|stages| stages.last());
    let queues = last.filter_map(|stage| match stage {
        Stage::Task(task) => Some(task.made.as_ref().ok()?.id.queue().clone()),
        Stage::Group(_) => None,
    });
    queues.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What all members of a group have in common.
pub(super) struct Rules<'a> {
    pub(super) group: &'a TaskId,
    /// The step before the group.
    pub(super) former: Option<&'a TaskId>,
    pub(super) form: Form,
    pub(super) policy: Option<PrerequisiteFailure>,
    pub(super) on_failure: PrerequisiteFailure,
    /// How long the outcomes of steps are kept at least, if the group may be submitted again.
    pub(super) keep: Option<Duration>,
}

impl Rules<'_> {
    /// Tells the first step of a member what it takes, and all steps what a failure means. A member
    /// whose failure the group does not wait for must not wait for the requeue of a step, either.
    fn begin(&self, stages: &mut [Stage<'_>]) {
        let Some((first, others)) = stages.split_first_mut() else { return };
        first.set_form(self.form);
        if let Some(policy) = self.policy {
            first.follow(policy);
        }
        if self.on_failure != PrerequisiteFailure::Wait {
            first.set_member_policy(PrerequisiteFailure::Cancel);
            for step in others {
                step.set_policy(PrerequisiteFailure::Cancel);
            }
        }
    }

    /// Gives the steps of a member the ids that follow from the group and their place, so that they
    /// have the same ids if the group is submitted again.
    fn name(&self, stages: &mut [Stage<'_>], index: u32) -> Result<(), Error> {
        let Some(Stage::Task(last)) = stages.last() else {
            return Err(Error::invalid(
                "a member of a group can't end with a group; add a callback to that one with \
                 .then(…)",
            ));
        };
        let queue = last.made.as_ref().map_err(Clone::clone)?.id.queue();
        let member = Member::id(self.group, queue, index);
        let count = stages.len();
        for (place, stage) in (0_u32..).zip(stages) {
            let is_last = place as usize + 1 == count;
            match stage {
                Stage::Task(task) => {
                    let submission = task.made.as_mut().map_err(|problem| problem.clone())?;
                    let queue = submission.id.queue();
                    let id = if is_last { member.clone() } else { part_id(&member, queue, place) };
                    (submission.id, submission.may_exist) = (id, true);
                }
                Stage::Group(group) => {
                    group.id.get_or_insert_with(|| part_id(&member, member.queue(), place));
                }
            }
        }
        Ok(())
    }

    /// Makes the last step of a member report to the group.
    fn enlist(&self, submission: &mut Submission, index: u32) {
        if submission.options.result_ttl == TaskOptions::DEFAULT.result_ttl {
            // The group keeps the result.
            submission.options.result_ttl = Duration::ZERO;
        }
        let group = self.group.clone();
        submission.member = Some(Member { group, index, on_failure: self.on_failure });
    }
}

/// Refuses a task that may be another one than the group expects.
fn check(submission: &Submission) -> Result<(), Error> {
    let refuse = |what: &str| {
        Err(Error::invalid(format!("task {:?}: a member of a group {what}", submission.task)))
    };
    if submission.may_exist {
        return refuse("gets its id from the group; set .id(…) on the group instead");
    }
    if submission.biz_id.is_some() {
        return refuse(
            "can't have a biz id, because another task may hold it; give the group an id with \
             .id(…), under which it can be submitted again, and write a task without biz_id for \
             its members",
        );
    }
    Ok(())
}
