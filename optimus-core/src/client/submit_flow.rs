//! Submits flows and groups, so that nothing of a flow runs before all of it is stored.

use std::{iter, mem, time::Duration};

use futures_util::future::BoxFuture;

use super::{
    Client, FlowHandle, GroupHandle, StepHandle,
    flow_call::can_go_along,
    flow_handle::Steps,
    later_steps::LaterSteps,
    part_ids::name_steps,
    submit_batches::Answer,
    unfinished_flow::{Parts, UnfinishedFlow},
};
use crate::{
    Error,
    after::{After, PREREQUISITES_MAX, Prerequisite, PrerequisiteFailure},
    broker::Receipt,
    first_step::Begins,
    flow::{Stage, StepTask},
    group_calls::GroupCalls,
    id::{QueueName, TaskId},
    platform::new_uuid,
    state::TaskState,
    step::{Form, IntoFlow, IntoGroup},
    submission::{Submission, Trace},
};

/// How long the outcome and the result of a step are kept for the next one, if that can't take them
/// at once: it may be in another queue.
const OUTCOME_TTL: Duration = Duration::from_secs(24 * 60 * 60);

impl Client {
    /// Submits a flow: what `chain![…]` or `then` made, a group with what follows it, or one call.
    /// Nothing runs before all its steps are stored: the last step is stored first.
    /// If a step can't be stored, the others are removed, and so are the parts of a flow whose
    /// future is dropped before the first step is sent. If Redis is away, they are removed once it
    /// answers again, within two minutes. If the process is killed before the first step is sent,
    /// Redis ends the others after a day as if the first one had been deleted.
    ///
    /// Steps with an id of their own, and a flow whose group has one, can be submitted again. So
    /// they are removed at once or not at all.
    ///
    /// The members of a group are read and sent a thousand at a time, and begin to run meanwhile.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit). [`Error::is_duplicate`] if the biz id of a step is
    /// held by another task; then nothing of the flow is stored. After an
    /// [unknown outcome](Error::is_unknown_outcome) of the first step, or of members with which the
    /// flow begins, the flow may be stored and run.
    /// [`Error::is_forgotten`] if a group is gone before all its members are stored: Redis has lost
    /// data, or the iterator takes longer for a thousand of them than the group is kept without
    /// all, which is its `result_ttl`, an hour at least.
    // Boxed, because the compiler can't always see that a future that names the flow is `Send`.
    pub fn submit_flow<'f, 'a: 'f, F>(
        &'f self,
        flow: F,
    ) -> BoxFuture<'f, Result<FlowHandle<F::Output>, Error>>
    where
        F: IntoFlow<'a, Input: Begins, Output: 'f>,
    {
        Box::pin(self.submit_stages(flow.into_flow().stages))
    }

    /// Submits the stages of a flow, the last of which returns `T`.
    pub(crate) async fn submit_stages<T>(
        &self,
        mut stages: Vec<Stage<'_>>,
    ) -> Result<FlowHandle<T>, Error> {
        let repeats = name_steps(&mut stages);
        let mut links = link(stages, None)?;
        keep_outcomes(&mut links, Duration::ZERO);
        let policies = links.iter().map(Link::policy).collect();
        let mut store = Store { repeats, ..Store::of(self) };
        match store.all(links).await {
            Ok(steps) => Ok(FlowHandle::new(self.clone(), Steps { steps, policies })),
            Err(problem) => {
                if store.is_unwanted(&problem) {
                    store.undo().await;
                }
                Err(problem)
            }
        }
    }

    /// Submits the members of a group without a callback; see [`submit_flow`](Self::submit_flow).
    ///
    /// # Errors
    /// The errors of [`submit_flow`](Self::submit_flow).
    // Not `async`, because the compiler reports a wrong argument of such a function three times.
    pub fn submit_group<'f, 'a: 'f, G>(
        &'f self,
        group: G,
    ) -> BoxFuture<'f, Result<GroupHandle<G::Member>, Error>>
    where
        G: IntoGroup<'a, Input: Begins, Member: 'f>,
    {
        Box::pin(self.submit_members(group.into_flow().stages))
    }

    async fn submit_members<T>(&self, stages: Vec<Stage<'_>>) -> Result<GroupHandle<T>, Error> {
        let flow: FlowHandle<T> = self.submit_stages(stages).await?;
        Ok(GroupHandle::new(self.clone(), flow.id().clone()))
    }

    /// Returns a handle for a group that was submitted elsewhere or earlier, such as by the
    /// handler of one of its members.
    pub fn group<T>(&self, id: TaskId) -> GroupHandle<T> {
        GroupHandle::new(self.clone(), id)
    }
}

/// A stage with its id, which knows what it waits for.
pub(super) enum Link<'a> {
    Task(Submission),
    Group { calls: GroupCalls<'a>, id: TaskId, former: Option<TaskId> },
}

impl Link<'_> {
    fn id(&self) -> &TaskId {
        match self {
            Self::Task(submission) => &submission.id,
            Self::Group { id, .. } => id,
        }
    }

    /// Returns what it does when the step before it fails.
    pub(super) fn policy(&self) -> PrerequisiteFailure {
        match self {
            Self::Task(task) => task.after.as_ref().map(|after| after.on_failure),
            Self::Group { calls, .. } => calls.members_policy,
        }
        .unwrap_or_default()
    }

    /// Lets it be cancelled if it is not stored yet: a later group of the flow was cancelled.
    pub(super) fn end_with(&mut self, group: &TaskId) -> Result<(), Error> {
        let last = Prerequisite::Task(group.clone());
        match self {
            Self::Task(task) => {
                let after = task.after.get_or_insert_with(|| After::new([]));
                after.prerequisites.truncate(PREREQUISITES_MAX - 1);
                after.prerequisites.push(last);
                after.on_failure = PrerequisiteFailure::Cancel;
                Ok(())
            }
            Self::Group { calls, .. } => {
                calls.after.push(Ok(last));
                calls.members_policy = Some(PrerequisiteFailure::Cancel);
                calls.on_failure = calls.members_policy;
                calls.let_members_wait()
            }
        }
    }
}

/// Gives each stage its id, and lets it wait for the one before it.
pub(super) fn link<'a>(
    stages: Vec<Stage<'a>>,
    mut former: Option<TaskId>,
) -> Result<Vec<Link<'a>>, Error> {
    let queues: Vec<Option<QueueName>> = stages.iter().map(queue_of).collect();
    let mut links: Vec<Link<'a>> = Vec::with_capacity(stages.len());
    let (mut inherited, last) = (Vec::new(), stages.len().saturating_sub(1));
    for (place, mut stage) in stages.into_iter().enumerate() {
        stage.wait_for(&mem::take(&mut inherited));
        let link = match stage {
            Stage::Task(task) => {
                check_form(&task, links.last())?;
                let mut submission = task.link(former.as_ref())?;
                if !submission.may_exist {
                    submission.id = TaskId::new(submission.id.queue().clone());
                }
                Link::Task(submission)
            }
            Stage::Group(mut calls) => {
                // A group without members ends at once, so the step after it waits for the others.
                if place < last && (former.is_some() || !calls.after.is_empty()) && calls.is_empty()
                {
                    let former = former.clone().map(Prerequisite::Task);
                    inherited = former.into_iter().map(Ok).chain(calls.after.clone()).collect();
                }
                calls.let_members_wait()?;
                let known = queues[place + 1..].iter().chain(queues[..place].iter().rev());
                let queue = known.flatten().next().cloned().or_else(|| first_queue(&mut calls));
                let id =
                    calls.id.clone().unwrap_or_else(|| TaskId::new(queue.unwrap_or_else(home)));
                Link::Group { calls: *calls, id, former: former.clone() }
            }
        };
        former = Some(link.id().clone());
        links.push(link);
    }
    Ok(links)
}

/// Returns the queue of the first member of a group.
fn first_queue(calls: &mut GroupCalls<'_>) -> Option<QueueName> {
    let mut members = mem::replace(&mut calls.members, Box::new(iter::empty()));
    let first = members.next();
    let queue = first.as_ref().and_then(|stages| stages.iter().find_map(queue_of));
    calls.members = Box::new(first.into_iter().chain(members));
    queue
}

/// Returns the queue of a group of which nothing else is known.
fn home() -> QueueName {
    QueueName::new(QueueName::DEFAULT).expect("a valid name")
}

/// Returns the queue of a task; `None` for a group.
fn queue_of(stage: &Stage<'_>) -> Option<QueueName> {
    let Stage::Task(task) = stage else { return None };
    task.made.as_ref().ok().map(|submission| submission.id.queue().clone())
}

/// Refuses a step that takes a list of results of a group, some of which may be missing.
fn check_form(task: &StepTask, former: Option<&Link<'_>>) -> Result<(), Error> {
    if let (Form::AllMembers, Some(Link::Group { calls, .. })) = (task.form(), former)
        && calls.on_failure == Some(PrerequisiteFailure::Run)
    {
        return Err(Error::invalid(
            "the step after a group that continues without its failed members can't take a list of \
             all results; take GroupResults, which has the end of each member",
        ));
    }
    Ok(())
}

/// Lets Redis remember how each step but the last ends, at least for this time.
pub(super) fn keep_outcomes(links: &mut [Link<'_>], least: Duration) {
    let Some((_, others)) = links.split_last_mut() else { return };
    for link in others {
        if let Link::Task(submission) = link {
            let ttl = submission.options.after.outcome_ttl.get_or_insert(OUTCOME_TTL);
            *ttl = least.max(*ttl);
        }
    }
}

/// The tasks and groups that a submit has stored so far.
pub(super) struct Store<'a> {
    pub(super) client: &'a Client,
    groups: Vec<TaskId>,
    /// What this submit has stored under ids that the caller has given, or that follow from such
    /// an id.
    named: Parts,
    /// Whether the flow may have been submitted before, under the id of a group.
    pub(super) repeats: bool,
    /// The name of this submit, which no other one has.
    pub(super) name: String,
    /// What waits for the part that is being stored.
    pub(super) later: LaterSteps,
    pub(super) unfinished: UnfinishedFlow,
    /// Whether the next call has the first step, or members of the first group.
    sends_first: bool,
}

impl<'a> Store<'a> {
    pub(super) fn of(client: &'a Client) -> Self {
        let (groups, named) = (Vec::new(), Parts::default());
        let name = format!("{:016x}", new_uuid().as_u64_pair().1);
        let (later, unfinished) = (LaterSteps::default(), UnfinishedFlow::of(client));
        let (repeats, sends_first) = (false, false);
        Self { client, groups, named, repeats, name, later, unfinished, sends_first }
    }

    /// Notes that this submit has made the group, if it is none within a member and may have been
    /// made before.
    pub(super) fn note_made(&mut self, group: &TaskId) {
        let made = &mut self.named.groups;
        if self.repeats && self.groups.contains(group) && !made.contains(group) {
            made.push(group.clone());
        }
    }

    /// Stores the stages from the last to the first; returns their handles in order.
    async fn all(&mut self, links: Vec<Link<'_>>) -> Result<Vec<StepHandle>, Error> {
        let (mut handles, mut tasks) = (Vec::with_capacity(links.len()), Vec::new());
        let mut cancelled = None;
        for (place, mut link) in links.into_iter().enumerate().rev() {
            if let Link::Task(task) = &link {
                self.later.check(&task.task, task.after.as_ref())?;
                self.later.add_task(task);
            }
            if let Some(group) = &cancelled {
                link.end_with(group)?;
            }
            match link {
                Link::Task(submission) => {
                    if place == 0 && !can_go_along(&submission, &tasks) {
                        self.steps(&mut tasks, &mut handles).await?;
                    }
                    self.sends_first = place == 0;
                    tasks.push(submission);
                }
                Link::Group { calls, id, former } => {
                    self.steps(&mut tasks, &mut handles).await?;
                    self.sends_first = place == 0;
                    self.unfinished.is_unwanted = !self.sends_first;
                    self.groups.push(id.clone());
                    if !self.repeats {
                        self.unfinished.add_group(id.clone());
                    }
                    let ended = Box::pin(self.members(calls, &id, former.as_ref())).await?;
                    if ended == Some(TaskState::Cancelled) {
                        self.later.remove(&id);
                        cancelled = Some(id.clone());
                    }
                    let handle = GroupHandle::new(self.client.clone(), id);
                    handles.push(StepHandle::Group(handle));
                }
            }
        }
        self.steps(&mut tasks, &mut handles).await?;
        handles.reverse();
        Ok(handles)
    }

    async fn steps(
        &mut self,
        tasks: &mut Vec<Submission>,
        handles: &mut Vec<StepHandle>,
    ) -> Result<(), Error> {
        let trace = self.repeats.then_some(Trace::Outcome);
        let tasks = tasks.drain(..).map(|mut task| {
            task.trace = trace;
            task
        });
        let passed = self.pass(tasks).await?;
        let own = passed.iter().filter(|task| !task.may_exist);
        self.unfinished.add(own.map(|task| task.id.clone()));
        self.unfinished.is_unwanted = !self.sends_first;
        let (stored, problem) = self.send(passed).await;
        // What an earlier submit has stored is not removed.
        let is_new = |(_, answer): &&(TaskId, Answer)| {
            answer.has_given_id && answer.receipt == Receipt::Created
        };
        self.named.steps.extend(stored.iter().filter(is_new).map(|(id, _)| id.clone()));
        if let Some(problem) = problem {
            return Err(problem);
        }
        for (id, answer) in stored {
            handles.push(StepHandle::Task(self.client.receive(id, answer)));
        }
        Ok(())
    }

    /// Returns whether to remove what was stored. A flow whose group has an id can be submitted
    /// again after an outage. If the outcome of the first part is unknown, the flow may run.
    pub(super) fn is_unwanted(&self, problem: &Error) -> bool {
        let is_final = problem.is_invalid()
            || problem.is_refused()
            || problem.is_too_large()
            || problem.is_duplicate()
            || problem.is_cycle();
        let may_come_again = self.repeats && !self.groups.is_empty();
        let may_run = self.sends_first && problem.is_unknown_outcome();
        is_final || !(may_come_again || may_run)
    }

    /// Removes what was stored of a flow that can't be stored as a whole. Members that run already
    /// are cancelled.
    async fn undo(&mut self) {
        let named = mem::take(&mut self.named);
        self.unfinished.undo(named).await;
    }
}
