//! What operators do to tasks and queues: cancel, requeue, pause.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::Client;
use crate::{
    Error,
    broker::{BATCH_MAX, BrokerError, Cancelled, Refusal},
    id::{QueueName, TaskId},
    state::TaskState,
};

impl Client {
    /// Cancels a task that waits, for good; asks the worker of a running one to stop it.
    /// Answers whether it is cancelled already.
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if it has ended, [`Error::is_forgotten`] if nothing is known of
    /// it; [`Error::is_unknown_outcome`]: it was sent twice and not answered; safe to repeat.
    pub async fn cancel(&self, id: &TaskId) -> Result<bool, Error> {
        let done = self.0.broker.cancel(id).await;
        done.map_err(|problem| refused(id, "cancel", problem)).and_then(|done| cancelled(id, done))
    }

    /// Does to many tasks what [`cancel`](Self::cancel) does to one: 128 of a queue in a call, in
    /// which Redis asks each worker once. Returns the answer of each, in their order.
    ///
    /// If Redis can't be reached the rest is not sent, and answered with that.
    pub async fn cancel_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<bool, Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let mut of_queues: BTreeMap<&QueueName, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            of_queues.entry(id.queue()).or_default().push(place);
        }
        let (mut answers, mut away) = (BTreeMap::new(), None);
        for (queue, places) in of_queues {
            for places in places.chunks(BATCH_MAX) {
                let asked: Vec<&TaskId> = places.iter().map(|place| &ids[*place]).collect();
                let done = match &away {
                    Some(why) => Err(BrokerError::NotDone(String::clone(why))),
                    None => self.0.broker.cancel_all(queue, &asked).await,
                };
                if let Err(BrokerError::NotDone(why) | BrokerError::Unknown(why)) = &done {
                    away = Some(why.clone());
                }
                for (nth, place) in places.iter().enumerate() {
                    let id = &ids[*place];
                    let answer = match &done {
                        Ok(done) => cancelled(id, done[nth]),
                        Err(problem) => Err(refused(id, "cancel", problem.clone())),
                    };
                    answers.insert(*place, answer);
                }
            }
        }
        answers.into_values().collect()
    }

    /// Puts a dead or cancelled task back in line, with its counts of tries at zero.
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if it is neither, [`Error::is_forgotten`] if nothing is known of
    /// it, [`Error::is_duplicate`] if another task has its biz id by now;
    /// [`Error::is_unknown_outcome`]: it was sent twice and not answered. Repeated, it is refused
    /// as [`Error::is_wrong_state`] if it was done and the task waits or runs.
    pub async fn requeue(&self, id: &TaskId) -> Result<(), Error> {
        self.0.broker.requeue(id).await.map_err(|problem| refused(id, "requeue", problem))
    }

    /// Does to many tasks what [`requeue`](Self::requeue) does to one: 128 at once in one round
    /// trip, each by itself. Returns the answer of each, in their order.
    ///
    /// If Redis can't be reached the rest is not sent, and answered with that.
    pub async fn requeue_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<(), Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let (mut answers, mut away) = (Vec::with_capacity(ids.len()), None);
        for ids in ids.chunks(BATCH_MAX) {
            let done = match &away {
                Some(why) => vec![Err(BrokerError::NotDone(String::clone(why))); ids.len()],
                None => join_all(ids.iter().map(|id| self.0.broker.requeue(id))).await,
            };
            for (id, done) in ids.iter().zip(done) {
                if let Err(BrokerError::NotDone(why) | BrokerError::Unknown(why)) = &done {
                    away = Some(why.clone());
                }
                answers.push(done.map_err(|problem| refused(id, "requeue", problem)));
            }
        }
        answers
    }

    /// Stops the claims of a queue; what runs goes on.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_unknown_outcome`], as of [`cancel`](Self::cancel).
    pub async fn pause(&self, queue: &QueueName) -> Result<(), Error> {
        self.set_paused(queue, true, "pause").await
    }

    /// Restarts the claims of a queue.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_unknown_outcome`], as of [`cancel`](Self::cancel).
    pub async fn resume(&self, queue: &QueueName) -> Result<(), Error> {
        self.set_paused(queue, false, "resume").await
    }

    async fn set_paused(&self, queue: &QueueName, paused: bool, verb: &str) -> Result<(), Error> {
        self.0.broker.pause(queue, paused).await.map_err(|problem| match problem {
            BrokerError::Unknown(why) => {
                Error::unknown_operation(format!("{verb} of queue {queue}"), Vec::new(), why)
            }
            problem => problem.into(),
        })
    }
}

fn cancelled(id: &TaskId, done: Cancelled) -> Result<bool, Error> {
    match done {
        Cancelled::Done => Ok(true),
        Cancelled::Requested => Ok(false),
        Cancelled::Ended(TaskState::Forgotten) => Err(Error::forgotten(id.clone())),
        Cancelled::Ended(state) => Err(Error::wrong_state(id.clone(), state, "cancel")),
    }
}

/// Says what an operator's verb met.
fn refused(id: &TaskId, verb: &'static str, problem: BrokerError) -> Error {
    let (refusal, detail) = match problem {
        BrokerError::Refused(Refusal::Newer, needs) => return Error::outdated(&needs),
        BrokerError::Refused(refusal, detail) => (refusal, detail),
        BrokerError::Unknown(why) => {
            return Error::unknown_operation(format!("{verb} of {id}"), vec![id.clone()], why);
        }
        problem => return problem.into(),
    };
    if refusal == Refusal::Duplicate
        && let Ok(owner) = TaskId::from_stored(id.queue().clone(), &detail)
    {
        return Error::duplicate(owner);
    }
    match TaskState::from_word(&detail) {
        Some(TaskState::Forgotten) | None => Error::forgotten(id.clone()),
        Some(state) => Error::wrong_state(id.clone(), state, verb),
    }
}
