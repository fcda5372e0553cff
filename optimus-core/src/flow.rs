//! Tasks that run one after the other, and each may take the result of the one before: [`Flow`].

use std::marker::PhantomData;

use crate::{
    Error,
    after::{Prerequisite, PrerequisiteFailure},
    call::Call,
    client::{Client, FlowHandle},
    group_calls::GroupCalls,
    id::TaskId,
    parameter::{Arguments, NoInput},
    prerequisite_key::IntoPrerequisite,
    step::{Before, Form, IntoFlow},
    submission::Submission,
    task::Task,
};

/// Steps that run one after the other: tasks, groups of tasks, and other flows. Nothing happens
/// until [`perform_async`](Self::perform_async) is awaited, or [`Client::submit_flow`].
///
/// `chain![reserve(order), pay, ship]` makes a flow, and so does
/// [`reserve(order).then(pay).then(ship)`](Call::then). Each step is a task with its own options.
/// It waits for the step before it as for a [prerequisite](Call::after), and takes its result as an
/// argument.
///
/// ```
/// # use optimus_core::{BoxError, Call, Client, Context, Error, Parameter, Task};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Reserve { order: u64 }
/// # impl Task for Reserve {
/// #     const NAME: &'static str = "reserve";
/// #     type Output = u64;
/// #     async fn run(self, _: Context) -> Result<u64, BoxError> { Ok(self.order) }
/// # }
/// # #[derive(Serialize, Deserialize)]
/// # struct Ship { shelf: u64 }
/// # impl Task for Ship {
/// #     const NAME: &'static str = "ship";
/// #     type Output = String;
/// #     async fn run(self, _: Context) -> Result<String, BoxError> { Ok(String::new()) }
/// # }
/// # impl Parameter<0> for Ship {
/// #     const NAME: &'static str = "shelf";
/// #     type Type = u64;
/// # }
/// # fn reserve(order: u64) -> Call<Reserve> { Reserve { order }.call() }
/// # fn ship(shelf: u64) -> Call<Ship> { Ship { shelf }.call() }
/// # async fn submit(client: &Client) -> Result<(), Error> {
/// // `reserve` and `ship` are functions with `#[optimus::task]`; `reserve` returns a shelf.
/// let handle = client.submit_flow(reserve(7).then(ship)).await?;
/// let parcel: String = handle.result().await?;
/// # Ok(())
/// # }
/// ```
///
/// `In` says what the first step takes; a flow that takes a result can only be a part of another
/// flow.
#[must_use = "a flow does nothing until it is submitted, such as by `.perform_async().await`"]
pub struct Flow<'a, Out, In = NoInput> {
    pub(crate) stages: Vec<Stage<'a>>,
    types: PhantomData<fn(In) -> Out>,
}

/// One step of a flow.
#[doc(hidden)]
pub enum Stage<'a> {
    /// A task.
    Task(Box<StepTask>),
    /// A group.
    Group(Box<GroupCalls<'a>>),
}

/// A task of a flow.
#[doc(hidden)]
pub struct StepTask {
    pub(crate) made: Result<Submission, Error>,
    /// Whether its payload ends where the result of the step before it follows.
    pub(crate) takes: bool,
    /// Whether the call or its definition says what happens if the step before it fails.
    has_policy: bool,
    form: Form,
}

impl StepTask {
    pub(crate) fn of<T: Task, In>(call: &Call<T, In>) -> Self {
        let takes = matches!(call.arguments, Arguments::Part(_));
        let has_policy = call.options().after.on_failure.is_some()
            || T::options().after.on_failure != PrerequisiteFailure::Wait;
        Self { made: call.prepare_step(), takes, has_policy, form: Form::Same }
    }

    /// Returns how the result of the step before becomes its argument.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn made(submission: Submission) -> Self {
        let has_policy = submission.options.after.on_failure != PrerequisiteFailure::Wait;
        Self { made: Ok(submission), takes: false, has_policy, form: Form::Same }
    }

    /// Returns the name of the task; an error if the step can't be submitted.
    pub(crate) fn name(&self) -> Result<&str, &Error> {
        self.made.as_ref().map(Submission::task)
    }

    /// Adds what it waits for.
    fn wait_for(&mut self, others: &[Result<Prerequisite, Error>]) {
        let Ok(submission) = &mut self.made else { return };
        match others.iter().cloned().collect::<Result<Vec<_>, _>>() {
            Ok(others) => {
                let own = submission.after.take().map_or_else(Vec::new, |own| own.prerequisites);
                submission.after = submission.options.after.wait([own, others].concat());
            }
            Err(problem) => {
                let task = &submission.task;
                self.made = Err(Error::invalid(format!("task {task:?}: {problem}")));
            }
        }
    }

    fn set_policy(&mut self, on_failure: PrerequisiteFailure) {
        if let Ok(submission) = &mut self.made
            && !self.has_policy
        {
            submission.options.after.on_failure = on_failure;
            self.has_policy = true;
            if let Some(after) = &mut submission.after {
                after.on_failure = on_failure;
            }
        }
    }

    /// Returns the submission of the task, which waits for the step before it.
    pub(crate) fn link(self, former: Option<&TaskId>) -> Result<Submission, Error> {
        let Self { made, takes, form, .. } = self;
        let mut submission = made?;
        let Some(former) = former else { return Ok(submission) };
        let options = submission.options.after;
        let others = submission.after.take().map_or_else(Vec::new, |after| after.prerequisites);
        let first = Prerequisite::Task(former.clone());
        let after = options.wait([vec![first], others].concat());
        let mut after = after.expect("it has a prerequisite");
        if takes {
            if after.on_failure == PrerequisiteFailure::Run {
                return Err(Error::invalid(format!(
                    "task {:?}: it takes the result of the step before it, so it can't run if that \
                     fails; let it wait or be cancelled, or pass a whole call, which takes nothing",
                    submission.task
                )));
            }
            let mut suffix = "}";
            if form == Form::AllMembers {
                submission.payload.extend_from_slice(ALL_MEMBERS.as_bytes());
                suffix = "}}";
            }
            after = after.taking(suffix);
        }
        submission.after = Some(after);
        submission.follows_step = true;
        Ok(submission)
    }
}

/// What stands before the handle of a group if the argument is a list of its results. A worker
/// replaces it by the list.
pub(crate) const ALL_MEMBERS: &str = "{\"$all\":";

impl Stage<'_> {
    pub(crate) fn set_form(&mut self, form: Form) {
        match self {
            Self::Task(task) => task.form = form,
            Self::Group(group) => group.form = form,
        }
    }

    /// Adds what it waits for. All members of a group wait for it.
    pub(crate) fn wait_for(&mut self, others: &[Result<Prerequisite, Error>]) {
        match self {
            Self::Task(task) => task.wait_for(others),
            Self::Group(group) => group.after.extend_from_slice(others),
        }
    }

    /// Sets what it does when the step before it fails, and what a group does when a member fails,
    /// unless that is set already.
    pub(crate) fn set_policy(&mut self, on_failure: PrerequisiteFailure) {
        self.follow(on_failure);
        self.set_member_policy(on_failure);
    }

    /// Sets what it does when the step before it fails, unless that is set already.
    pub(crate) fn follow(&mut self, on_failure: PrerequisiteFailure) {
        match self {
            Self::Task(task) => task.set_policy(on_failure),
            Self::Group(group) => _ = group.members_policy.get_or_insert(on_failure),
        }
    }

    /// Sets what a group does when a member fails, unless that is set already.
    pub(crate) fn set_member_policy(&mut self, on_failure: PrerequisiteFailure) {
        if let Self::Group(group) = self {
            group.on_failure.get_or_insert(on_failure);
        }
    }
}

impl<'a, Out, In> Flow<'a, Out, In> {
    pub(crate) fn of(stages: Vec<Stage<'a>>) -> Self {
        Self { stages, types: PhantomData }
    }

    /// Adds a step, which runs after the others; see [`Step`].
    ///
    /// [`Step`]: crate::Step
    pub fn then<Kind, S, O>(self, step: S) -> Flow<'a, O, In>
    where
        Out: Before<'a, S, Kind, O>,
    {
        self.followed_by(<Out as Before<'a, S, Kind, O>>::stages(step))
    }

    pub(crate) fn followed_by<O>(self, step: (Vec<Stage<'a>>, Form)) -> Flow<'a, O, In> {
        let (mut next, form) = step;
        if let Some(first) = next.first_mut() {
            first.set_form(form);
        }
        let mut stages = self.stages;
        stages.append(&mut next);
        Flow::of(stages)
    }

    /// Lets the flow wait until a task, a group or another flow has succeeded, whichever is
    /// submitted first; see [`Call::after`]. Its first step waits, or all members of its first
    /// group. Call it once for each prerequisite; a task has at most 32.
    pub fn after(mut self, prerequisite: impl IntoPrerequisite) -> Self {
        if let Some(first) = self.stages.first_mut() {
            first.wait_for(&[prerequisite.into_prerequisite()]);
        }
        self
    }

    /// Sets what each step does when the one before it ends as Dead or Cancelled, and the first one
    /// when what it [waits for](Self::after) does, unless the call or the definition of the step
    /// says it: by default it
    /// [waits](PrerequisiteFailure::Wait) until an operator has requeued that one and it has
    /// succeeded. With [`Cancel`](PrerequisiteFailure::Cancel) the rest of the flow is cancelled.
    /// It is the [`on_member_failure`](crate::Group::on_member_failure) of its groups, too, unless
    /// they say otherwise.
    pub fn on_prerequisite_failure(mut self, on_failure: PrerequisiteFailure) -> Self {
        self.stages.iter_mut().for_each(|stage| stage.set_policy(on_failure));
        self
    }
}

impl<Out> Flow<'_, Out> {
    /// Submits all steps. Nothing runs before all of them are stored. In a handler, they go to the
    /// store of its worker; elsewhere, through the installed client; see [`Client::install`].
    ///
    /// # Errors
    /// See [`Client::submit_flow`]; [`Error::is_invalid`] if no client was installed.
    pub async fn perform_async(self) -> Result<FlowHandle<Out>, Error> {
        Client::perform_flow(self.stages).await
    }
}

impl<T: Task, In> Call<T, In> {
    /// Adds a step, which runs after this one, and returns both as a [`Flow`]; see [`Step`].
    ///
    /// [`Step`]: crate::Step
    pub fn then<'a, Kind, S, O>(self, step: S) -> Flow<'a, O, In>
    where
        T::Output: Before<'a, S, Kind, O>,
    {
        self.into_flow().then(step)
    }
}
