//! Calls that run in parallel and end together: [`group`], [`Group`].

use std::{iter, marker::PhantomData, mem, time::Duration};

use crate::{
    Error,
    after::{Prerequisite, PrerequisiteFailure},
    client::{Client, GroupHandle},
    flow::{Flow, Stage},
    id::TaskId,
    parameter::NoInput,
    prerequisite_key::IntoPrerequisite,
    step::{AfterGroup, Form, IntoFlow},
};

/// How long the results of a group are kept after its end, unless the group says otherwise.
pub(crate) const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Makes a group of calls, which run in parallel. Its members are calls or flows of one
/// result type, in any queues. A callback that is added with [`then`](Group::then) runs after all
/// of them.
///
/// The iterator is read while the group is submitted, a thousand members at a time. So a group of
/// 100,000 members needs little memory.
///
/// ```
/// # use optimus_core::{BoxError, Call, Client, Context, Error, Parameter, Task, group};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Count { shard: u32 }
/// # impl Task for Count {
/// #     const NAME: &'static str = "count";
/// #     type Output = u64;
/// #     async fn run(self, _: Context) -> Result<u64, BoxError> { Ok(1) }
/// # }
/// # #[derive(Serialize, Deserialize)]
/// # struct Sum { counts: Vec<u64> }
/// # impl Task for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Output = u64;
/// #     async fn run(self, _: Context) -> Result<u64, BoxError> { Ok(self.counts.iter().sum()) }
/// # }
/// # impl Parameter<0> for Sum {
/// #     const NAME: &'static str = "counts";
/// #     type Type = Vec<u64>;
/// # }
/// # fn count(shard: u32) -> Call<Count> { Count { shard }.call() }
/// # fn sum(counts: Vec<u64>) -> Call<Sum> { Sum { counts }.call() }
/// # async fn submit(client: &Client) -> Result<(), Error> {
/// // `count(shard: u32) -> u64` and `sum(counts: Vec<u64>) -> u64` have `#[optimus::task]`.
/// let handle = client.submit_flow(group((0..1000).map(count)).then(sum)).await?;
/// println!("{} rows", handle.result().await?);
/// # Ok(())
/// # }
/// ```
pub fn group<'a, C: IntoFlow<'a>>(
    calls: impl IntoIterator<Item = C, IntoIter: Send + 'a>,
) -> Group<'a, C::Output, C::Input> {
    let members = calls.into_iter().map(|call| call.into_flow().stages);
    Group {
        calls: GroupCalls {
            members: Box::new(members),
            id: None,
            on_failure: None,
            keep: KEEP,
            form: Form::Same,
            members_policy: None,
            after: Vec::new(),
        },
        types: PhantomData,
    }
}

/// Calls that run in parallel; see [`group`]. Nothing happens until
/// [`perform_async`](Self::perform_async) is awaited, or [`Client::submit_group`].
#[must_use = "a group does nothing until it is submitted, such as by `.perform_async().await`"]
pub struct Group<'a, T, In = NoInput> {
    pub(crate) calls: GroupCalls<'a>,
    types: PhantomData<fn(In) -> T>,
}

/// A group whose types are erased.
#[doc(hidden)]
pub struct GroupCalls<'a> {
    pub(crate) members: Box<dyn Iterator<Item = Vec<Stage<'a>>> + Send + 'a>,
    pub(crate) id: Option<TaskId>,
    /// What a member that fails does to the group, if the program has set it.
    pub(crate) on_failure: Option<PrerequisiteFailure>,
    pub(crate) keep: Duration,
    /// How the result of the step before the group becomes an argument of the members.
    pub(crate) form: Form,
    /// What the members do when the step before the group fails.
    pub(crate) members_policy: Option<PrerequisiteFailure>,
    /// What each member waits for, in addition to the step before the group.
    pub(crate) after: Vec<Result<Prerequisite, Error>>,
}

impl GroupCalls<'_> {
    /// Returns whether it has no member. It reads the first one.
    pub(crate) fn is_empty(&mut self) -> bool {
        let mut members = mem::replace(&mut self.members, Box::new(iter::empty()));
        let first = members.next();
        let is_empty = first.is_none();
        self.members = Box::new(first.into_iter().chain(members));
        is_empty
    }

    /// Lets the first steps of the members wait for what the group waits for.
    pub(crate) fn let_members_wait(&mut self) -> Result<(), Error> {
        let after = mem::take(&mut self.after);
        if let Some(Err(problem)) = after.iter().find(|one| one.is_err()) {
            return Err(Error::invalid(format!("a group: {problem}")));
        }
        if !after.is_empty() {
            let members = mem::replace(&mut self.members, Box::new(iter::empty()));
            self.members = Box::new(members.map(move |mut stages| {
                stages.first_mut().into_iter().for_each(|first| first.wait_for(&after));
                stages
            }));
        }
        Ok(())
    }
}

impl<'a, T, In> Group<'a, T, In> {
    /// Gives the group an id that was made before with [`TaskId::new`], in the queue that stores
    /// the state of the group. A program that does not know whether its submit was stored may
    /// submit the same group again under the same id, also after a crash in between: members
    /// that are stored or have ended are not added again, and neither are the other steps of its
    /// flow. A task that ends while the group is submitted again may run once more; a member counts
    /// once.
    pub fn id(mut self, id: TaskId) -> Self {
        self.calls.id = Some(id);
        self
    }

    /// Sets what a member that ends as Dead or Cancelled does to the group. By default the group
    /// [waits](PrerequisiteFailure::Wait) until an operator has requeued the member and it has
    /// succeeded. With [`Cancel`](PrerequisiteFailure::Cancel) the group is cancelled, and so are
    /// the callback and the steps after it, because nobody can requeue a group; only a step with
    /// [`Run`](PrerequisiteFailure::Run) runs nevertheless. With `Run` the group continues, and the
    /// callback, which takes a [`GroupResults`](crate::GroupResults), sees which members failed.
    ///
    /// With `Cancel` and `Run`, a member that is a flow fails as soon as one of its steps does: the
    /// steps after that one, and groups within the flow, have the policy `Cancel` unless they say
    /// otherwise.
    pub fn on_member_failure(mut self, on_failure: PrerequisiteFailure) -> Self {
        self.calls.on_failure = Some(on_failure);
        self
    }

    /// Lets the group wait until a task, another group or a flow has succeeded, whichever is
    /// submitted first; see [`Call::after`](crate::Call::after). Each member waits for it. Members
    /// that a handler [adds](GroupHandle::add) do not.
    pub fn after(mut self, prerequisite: impl IntoPrerequisite) -> Self {
        self.calls.after.push(prerequisite.into_prerequisite());
        self
    }

    /// Sets what the members do when what the group [waits for](Self::after) ends as Dead or
    /// Cancelled, unless their calls or definitions say it. By default they wait until an operator
    /// has requeued that task and it has succeeded. With [`Cancel`](PrerequisiteFailure::Cancel)
    /// they are cancelled, and so is the group, unless
    /// [`on_member_failure`](Self::on_member_failure) says otherwise.
    pub fn on_prerequisite_failure(mut self, on_failure: PrerequisiteFailure) -> Self {
        self.calls.members_policy = Some(on_failure);
        if on_failure == PrerequisiteFailure::Cancel {
            self.calls.on_failure.get_or_insert(on_failure);
        }
        self
    }

    /// Sets how long the results are kept after the end of the group: 7 days by default.
    pub fn result_ttl(mut self, ttl: Duration) -> Self {
        self.calls.keep = ttl;
        self
    }

    /// Adds a step that runs after all members; see [`Step`]. It takes their results in the order
    /// of the calls, as a `Vec` or as a [`GroupResults`](crate::GroupResults).
    ///
    /// [`Step`]: crate::Step
    pub fn then<Kind, S, O>(self, step: S) -> Flow<'a, O, In>
    where
        T: AfterGroup<'a, S, Kind, O>,
    {
        self.into_flow().followed_by(<T as AfterGroup<'a, S, Kind, O>>::stages(step))
    }

    pub(crate) fn erase(self) -> GroupCalls<'a> {
        self.calls
    }
}

impl<T> Group<'_, T> {
    /// Submits the members. In a handler, they go to the store of its worker; elsewhere, through
    /// the installed client; see [`Client::install`].
    ///
    /// # Errors
    /// See [`Client::submit_flow`]; [`Error::is_invalid`] if no client was installed.
    pub async fn perform_async(self) -> Result<GroupHandle<T>, Error> {
        Client::current_at_once("a group")?.submit_group(self).await
    }
}
