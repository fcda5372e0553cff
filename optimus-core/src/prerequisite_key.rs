//! Names a task that another one waits for: [`key`] and [`IntoPrerequisite`].

use std::fmt;

use crate::{
    Error,
    after::Prerequisite,
    client::{FlowHandle, GroupHandle, TaskHandle},
    id::{QueueName, TaskId},
    task::{Task, TaskFn},
};

/// A task by its name and biz id: see [`key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    queue: String,
    task: String,
    biz_id: String,
    /// Whether its definition says that its outcome is not remembered.
    is_not_remembered: bool,
}

/// Names the task with this biz id, for [`Call::after`](crate::Call::after), whether it was
/// submitted already or not. Its definition needs `outcome_ttl`, so that its outcome is known to a
/// task that is submitted later. [`Inspector::find`](crate::Inspector::find) finds the id of the
/// task, and needs no `outcome_ttl`.
///
/// The biz id is anything that can be printed: a text, a number, a [`Uuid`](uuid::Uuid). It is
/// printed as by `{}`, as a template such as `biz_id = "{order}"` does.
///
/// ```
/// # use optimus_core::{BoxError, Call, Context, Task, TaskOptions, key};
/// # use serde::{Deserialize, Serialize};
/// # use std::time::Duration;
/// # #[derive(Serialize, Deserialize)]
/// # struct Reserve { order: String }
/// # impl Task for Reserve {
/// #     const NAME: &'static str = "reserve";
/// #     type Output = ();
/// #     fn options() -> TaskOptions {
/// #         TaskOptions::new().outcome_ttl(Duration::from_secs(600))
/// #     }
/// #     async fn run(self, _: Context) -> Result<(), BoxError> { Ok(()) }
/// # }
/// # #[derive(Serialize, Deserialize)]
/// # struct Ship { order: String }
/// # impl Task for Ship {
/// #     const NAME: &'static str = "ship";
/// #     type Output = ();
/// #     async fn run(self, _: Context) -> Result<(), BoxError> { Ok(()) }
/// # }
/// # fn reserve(order: String) -> Call<Reserve> { Reserve { order }.call() }
/// # fn ship(order: String) -> Call<Ship> { Ship { order }.call() }
/// // `reserve` and `ship` are functions with `#[optimus::task]`.
/// let call = ship("o-17".into()).after(key(reserve, "o-17"));
/// # drop(call);
/// ```
pub fn key<Args, F: TaskFn<Args>>(task: F, biz_id: impl fmt::Display) -> Key {
    drop(task);
    Key::of::<F::Task>(biz_id)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} with biz id {:?}", self.queue, self.task, self.biz_id)
    }
}

impl Key {
    /// Names a task by its type. [`key`] does the same for a function.
    pub fn of<T: Task>(biz_id: impl fmt::Display) -> Self {
        let options = T::options();
        let is_not_remembered = options.after.outcome_ttl.is_none();
        Self { is_not_remembered, ..Self::new(options.queue, T::NAME, biz_id) }
    }

    /// Names a task of a queue that this program does not know as a function or a type. Its
    /// definition needs `outcome_ttl`, which can't be checked here.
    pub fn new(
        queue: impl Into<String>,
        task: impl Into<String>,
        biz_id: impl fmt::Display,
    ) -> Self {
        let (queue, task, biz_id) = (queue.into(), task.into(), biz_id.to_string());
        Self { queue, task, biz_id, is_not_remembered: false }
    }

    /// Returns the queue, the task's name and the biz id.
    pub(crate) fn parts(&self) -> Result<(QueueName, &str, &str), Error> {
        Ok((QueueName::new(&self.queue)?, &self.task, &self.biz_id))
    }

    /// Names the task in another queue than that of its definition, as
    /// [`Call::queue`](crate::Call::queue) does.
    #[must_use]
    pub fn queue(self, queue: impl Into<String>) -> Self {
        Self { queue: queue.into(), ..self }
    }
}

/// Types that name what a call or a flow can wait for: the key of [`key`], the handle of a task, a
/// group or a flow, or a [`TaskId`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task that a call can wait for",
    label = "not a key, a handle or an id",
    note = "pass `optimus::key(task, \"biz id\")`, a reference to the handle of a submitted task, \
            group or flow, or a `TaskId`"
)]
pub trait IntoPrerequisite {
    /// Checks the name.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no task can have this name, or if its definition has no
    /// `outcome_ttl`.
    fn into_prerequisite(self) -> Result<Prerequisite, Error>;
}

impl IntoPrerequisite for Prerequisite {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        Ok(self)
    }
}

impl IntoPrerequisite for Key {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        let Self { queue, task, biz_id, is_not_remembered } = self;
        if is_not_remembered {
            return Err(Error::invalid(format!(
                "the prerequisite {task:?} has no outcome_ttl, so nothing is known of it once it \
                 has succeeded; set a time in its definition, as in outcome_ttl = \"7d\""
            )));
        }
        let queue = QueueName::new(queue).map_err(|problem| {
            Error::invalid(format!("the queue of the prerequisite {task:?}: {problem}"))
        })?;
        Ok(Prerequisite::Key { queue, task, biz_id })
    }
}

impl IntoPrerequisite for TaskId {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        Ok(Prerequisite::Task(self))
    }
}

impl IntoPrerequisite for &TaskId {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        self.clone().into_prerequisite()
    }
}

impl<T> IntoPrerequisite for &GroupHandle<T> {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        self.id().into_prerequisite()
    }
}

/// Waits for the last step of the flow.
impl<T> IntoPrerequisite for &FlowHandle<T> {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        self.id().into_prerequisite()
    }
}

impl<T> IntoPrerequisite for &TaskHandle<T> {
    fn into_prerequisite(self) -> Result<Prerequisite, Error> {
        self.id().into_prerequisite()
    }
}
