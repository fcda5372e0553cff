//! A submitted flow, as its submitter uses it: [`FlowHandle`].

use std::{fmt, marker::PhantomData, pin::pin, time::Duration};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Client, GroupHandle, TaskHandle, operate::refused};
use crate::{
    Error, FlowCancelled, after::PrerequisiteFailure, broker::Cancelled, id::TaskId,
    state::TaskState,
};

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
    /// What each does when the one before it fails.
    pub(super) policies: Vec<PrerequisiteFailure>,
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

    /// Returns whether the step has ended without success, or a group waits for a requeue.
    async fn has_failed(&self) -> Result<bool, Error> {
        Ok(match self {
            Self::Task(task) => {
                matches!(task.status().await?, TaskState::Dead | TaskState::Cancelled)
            }
            Self::Group(group) => {
                let found = group.progress().await?;
                found.ended == Some(TaskState::Cancelled) || found.ended.is_none() && found.lost > 0
            }
        })
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
            if let Err(problem) = done
                && !has_ended(&problem)
            {
                return Err(problem);
            }
        }
        Ok(())
    }
}

/// Whether a cancel fails with this because the step has ended.
fn has_ended(problem: &Error) -> bool {
    problem.is_wrong_state() || problem.is_forgotten()
}

impl Client {
    /// Cancels a flow as [`FlowHandle::cancel`], in a program that has only the ids of its steps,
    /// in their order: those of [`FlowHandle::steps`], which the submitter has stored. It finds out
    /// which of them are groups.
    ///
    /// ```no_run
    /// # async fn doc(client: optimus_core::Client, stored: Vec<String>)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// # use optimus_core as optimus;
    /// use optimus::TaskId;
    ///
    /// let steps = stored.iter().map(|id| id.parse::<TaskId>());
    /// client.cancel_flow(steps.collect::<Result<Vec<_>, _>>()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A repeated cancel finds steps that have ended before.
    ///
    /// # Errors
    /// [`Error::is_forgotten`] if nothing is known of any step; [`Error::is_invalid`] without ids;
    /// [`Error::is_unavailable`] or [`Error::is_unknown_outcome`]: repeat the call.
    pub async fn cancel_flow(
        &self,
        steps: impl IntoIterator<Item = TaskId>,
    ) -> Result<FlowCancelled, Error> {
        let steps: Vec<TaskId> = steps.into_iter().collect();
        if steps.is_empty() {
            return Err(Error::invalid("a flow has a step: give the ids of all its steps"));
        }
        let mut all = FlowCancelled::default();
        for id in steps.iter().rev() {
            match self.cancel_step(id).await? {
                Ended::Now => all.cancelled.push(id.clone()),
                Ended::Soon => all.asked_to_stop.push(id.clone()),
                Ended::Before(state) => all.ended.push((id.clone(), state)),
            }
        }
        let unknown = all.ended.iter().filter(|(_, state)| *state == TaskState::Forgotten);
        if unknown.count() == steps.len() {
            return Err(Error::forgotten(steps[0].clone()));
        }
        // The last step was cancelled first.
        all.cancelled.reverse();
        all.asked_to_stop.reverse();
        all.ended.reverse();
        Ok(all)
    }

    /// Cancels a task, or a group with its members.
    async fn cancel_step(&self, id: &TaskId) -> Result<Ended, Error> {
        if let Some(before) = self.broker().group(id).await? {
            // Members of one that was cancelled may be left.
            self.group::<()>(id.clone()).cancel().await?;
            return Ok(before.ended.map_or(Ended::Now, Ended::Before));
        }
        let state = self.broker().inspect(id).await?.state;
        let (done, posted) = self
            .broker()
            .cancel_many(id.queue(), &[id])
            .await
            .map_err(|problem| refused(id, "cancel", problem))?;
        if posted {
            self.carry(id.queue()).await;
        }
        Ok(match done.first() {
            // A repeated cancel is answered as the first one.
            Some(Cancelled::Done) if state == TaskState::Cancelled => Ended::Before(state),
            Some(Cancelled::Done) => Ended::Now,
            Some(Cancelled::Requested) => Ended::Soon,
            Some(Cancelled::Ended(state)) => Ended::Before(*state),
            None => Ended::Before(TaskState::Forgotten),
        })
    }
}

/// When a step of a flow ends, that is cancelled.
enum Ended {
    Now,
    Soon,
    Before(TaskState),
}

impl<T: DeserializeOwned + 'static> FlowHandle<T> {
    /// Waits for the end of the flow, through retries and outages, and returns the result of the
    /// last step.
    ///
    /// It watches all steps. If one is Dead or Cancelled and the last one does not run without it,
    /// it returns that error, which names the step. The steps after it may wait for its
    /// requeue, according to [their policy](crate::Flow::on_prerequisite_failure). Once an operator
    /// has requeued the step, this can be called again.
    ///
    /// # Errors
    /// The errors of [`TaskHandle::result`].
    pub async fn result(&self) -> Result<T, Error> {
        let last = self.steps().len() - 1;
        let others = self.steps()[..last].iter().enumerate();
        let mut others: FuturesUnordered<_> =
            others.map(|(place, step)| async move { (place, step.succeeded().await) }).collect();
        let mut result = pin!(self.last_result());
        let (place, problem) = loop {
            tokio::select! {
                biased;
                result = &mut result => match result {
                    Err(problem) => break (last, problem),
                    result => return result,
                },
                Some((place, ended)) = others.next() => {
                    if let Err(problem) = ended
                        && self.ends_with(place, &problem).await
                    {
                        break (place, problem);
                    }
                }
            }
        };
        Err(self.first_failure(place, problem).await)
    }

    async fn last_result(&self) -> Result<T, Error> {
        match self.last() {
            StepHandle::Task(task) => task.clone().returning().result().await,
            StepHandle::Group(group) => group.handle_as().await,
        }
    }

    /// Returns whether the flow ends with this error of a step: the first step after it that is not
    /// cancelled with the one before it waits for a requeue.
    async fn ends_with(&self, place: usize, problem: &Error) -> bool {
        if problem.is_forgotten() {
            return false;
        }
        let after = &self.steps.policies[place + 1..];
        let is_void = after.contains(&PrerequisiteFailure::Run) && self.is_void(place).await;
        let first = after.iter().find(|policy| match policy {
            PrerequisiteFailure::Cancel => false,
            PrerequisiteFailure::Wait => !is_void,
            PrerequisiteFailure::Run => true,
        });
        first != Some(&PrerequisiteFailure::Run)
    }

    /// Returns whether the end of a step is one that no requeue can change: the steps after it
    /// don't wait for a requeue.
    async fn is_void(&self, place: usize) -> bool {
        match &self.steps()[place] {
            StepHandle::Group(group) => {
                let found = group.progress().await;
                found.is_ok_and(|found| found.ended == Some(TaskState::Cancelled))
            }
            StepHandle::Task(task) => {
                let broker = self.client.broker();
                broker.is_void(task.id()).await.unwrap_or_default()
            }
        }
    }

    /// Returns the error of the first step that has failed, if a later one was cancelled because of
    /// it, with the place of the step.
    async fn first_failure(&self, place: usize, problem: Error) -> Error {
        let count = self.steps().len();
        let in_step = |place, problem| {
            if count > 1 { Error::step(place + 1, count, problem) } else { problem }
        };
        let may_follow = problem.is_cancelled();
        for (earlier, step) in self.steps()[..place].iter().enumerate().filter(|_| may_follow) {
            if let Ok(true) = step.has_failed().await
                && let Err(first) = step.succeeded().await
                && self.ends_with(earlier, &first).await
            {
                return in_step(earlier, first);
            }
        }
        in_step(place, problem)
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
