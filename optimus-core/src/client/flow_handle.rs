//! A submitted flow, as its submitter uses it: [`FlowHandle`].

use std::{fmt, marker::PhantomData, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Client, GroupHandle, TaskHandle};
use crate::{Error, id::TaskId, state::TaskState};

/// A submitted [`Flow`](crate::Flow) whose last step returns `T`. Dropping it changes nothing.
pub struct FlowHandle<T> {
    client: Client,
    steps: Steps,
    output: PhantomData<fn() -> T>,
}

/// The steps of a flow, in order.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub(super) steps: Vec<StepHandle>,
    /// Whether each runs although the one before it has failed.
    pub(super) runs: Vec<bool>,
}

/// A step of a submitted flow.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StepHandle {
    /// A task.
    Task(TaskHandle<Value>),
    /// A group of tasks.
    Group(GroupHandle<Value>),
}

impl StepHandle {
    /// Returns the id of the task or the group.
    pub fn id(&self) -> &TaskId {
        match self {
            Self::Task(task) => task.id(),
            Self::Group(group) => group.id(),
        }
    }

    /// Waits until the step has ended; an error if it has not succeeded.
    async fn succeeded(&self) -> Result<(), Error> {
        match self {
            Self::Task(task) => match task.ended().await? {
                TaskState::Dead | TaskState::Cancelled => task.result().await.map(drop),
                _ => Ok(()),
            },
            Self::Group(group) => group.ended().await.map(drop),
        }
    }
}

impl<T> FlowHandle<T> {
    pub(super) fn new(client: Client, steps: Steps) -> Self {
        Self { client, steps, output: PhantomData }
    }

    /// Returns the handles of all steps, in order. They also find the steps in a program that has
    /// only their ids; see [`Client::handle`] and [`Client::group`].
    pub fn steps(&self) -> &[StepHandle] {
        &self.steps.steps
    }

    fn last(&self) -> &StepHandle {
        self.steps.steps.last().expect("a flow has a step")
    }

    /// Returns the id of the last step.
    pub fn id(&self) -> &TaskId {
        self.last().id()
    }

    /// Cancels all steps that have not ended, as [`TaskHandle::cancel`] and [`GroupHandle::cancel`]
    /// do. The last step is cancelled first, so no step starts meanwhile.
    ///
    /// # Errors
    /// [`Error::is_unavailable`] or [`Error::is_unknown_outcome`]: repeat the call.
    pub async fn cancel(&self) -> Result<(), Error> {
        for step in self.steps().iter().rev() {
            let done = match step {
                StepHandle::Task(task) => self.client.cancel(task.id()).await.map(drop),
                StepHandle::Group(group) => group.cancel().await.map(drop),
            };
            done.or_else(|problem| {
                let has_ended = problem.is_wrong_state() || problem.is_forgotten();
                if has_ended { Ok(()) } else { Err(problem) }
            })?;
        }
        Ok(())
    }
}

impl<T: DeserializeOwned + 'static> FlowHandle<T> {
    /// Waits for the end of the flow, through retries and outages, and returns the result of the
    /// last step.
    ///
    /// It checks one step after the other. If one is Dead or Cancelled, it returns the error of
    /// that step, which names it. The steps after it may wait for its requeue,
    /// according to [their policy](crate::Flow::on_prerequisite_failure). Once an operator has
    /// requeued the step, this can be called again.
    ///
    /// # Errors
    /// The errors of [`TaskHandle::result`].
    pub async fn result(&self) -> Result<T, Error> {
        let count = self.steps().len();
        let in_step = |place: usize| {
            move |problem| if count > 1 { Error::step(place + 1, count, problem) } else { problem }
        };
        for (place, step) in self.steps().iter().enumerate() {
            let next_runs = self.steps.runs.get(place + 1).copied();
            let is_last = next_runs.is_none();
            let ended = match step {
                StepHandle::Task(_) if is_last => break,
                step => step.succeeded().await,
            };
            if next_runs != Some(true) {
                ended.map_err(in_step(place))?;
            }
        }
        let result = match self.last() {
            StepHandle::Task(task) => task.clone().returning().result().await,
            StepHandle::Group(group) => group.handle_as().await,
        };
        result.map_err(in_step(count - 1))
    }

    /// Waits as [`result`](Self::result), but no longer than `timeout`.
    ///
    /// # Errors
    /// The errors of [`result`](Self::result), and [`Error::is_timeout`], which does not change the
    /// flow.
    pub async fn result_within(&self, timeout: Duration) -> Result<T, Error> {
        match tokio::time::timeout(timeout, self.result()).await {
            Ok(result) => result,
            Err(_) => Err(Error::waited_too_long(self.id().clone(), timeout, None, None)),
        }
    }
}

impl<T> Clone for FlowHandle<T> {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.steps.clone())
    }
}

impl<T> fmt::Debug for FlowHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlowHandle").field(&self.steps.steps).finish()
    }
}
