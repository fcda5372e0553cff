//! Controls tasks and queues: cancel, requeue, delete, pause.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use super::{Client, other_kind::is_unknown};
use crate::{
    CancelAnswer, DeleteAnswer, Error, QueueAnswer,
    broker::{BATCH_MAX, BrokerError, Cancelled, Deleted, Refusal},
    id::{QueueName, TaskId},
    state::TaskState,
};

impl Client {
    pub(super) async fn cancel_one(&self, id: &TaskId) -> Result<CancelAnswer, Error> {
        self.cancel_all([id.clone()]).await.pop().expect("an answer for each id")
    }

    /// Applies [`cancel`](Self::cancel) to many tasks. Each request cancels up to 128 tasks of a
    /// queue and asks each worker once. Returns the answer of each task, in order.
    ///
    /// If Redis can't be reached, the remaining calls are not sent, and their answers are that
    /// error.
    pub async fn cancel_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<CancelAnswer, Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let (done, posted) = self.each(Verb::Cancel, &ids).await;
        self.carry_all(posted).await;
        let answer =
            |is_done| if is_done { CancelAnswer::Cancelled } else { CancelAnswer::AskedToStop };
        let answers = done.into_iter().map(|done| done.map(answer)).collect();
        self.told_apart(&ids, answers, is_unknown).await
    }

    /// Puts a dead or cancelled task back in the ready list, with its counts of tries at zero.
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if the task is neither; [`Error::is_forgotten`] if the store has
    /// no data about it; [`Error::is_invalid`] if the id is that of a group;
    /// [`Error::is_duplicate`] if another task holds its biz id;
    /// [`Error::is_cycle`] if it would wait for itself through other tasks of its queue;
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered. If that
    /// requeue was done and the task waits or runs, a repeat fails with [`Error::is_wrong_state`].
    pub async fn requeue(&self, id: &TaskId) -> Result<(), Error> {
        let posted = self.0.broker.requeue(id).await;
        let posted = posted.map_err(|problem| refused(id, "requeue", problem));
        if is_unknown(&posted) {
            return Err(self.no_task(id).await);
        }
        if posted? {
            self.carry(id.queue()).await;
        }
        Ok(())
    }

    /// Applies [`requeue`](Self::requeue) to many tasks, 128 per round trip, each on its own.
    /// Returns the answer of each task, in order.
    ///
    /// If Redis can't be reached, the remaining calls are not sent, and their answers are that
    /// error.
    pub async fn requeue_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<(), Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let (mut answers, mut away) = (Vec::with_capacity(ids.len()), None);
        let mut posted = BTreeSet::new();
        for ids in ids.chunks(BATCH_MAX) {
            let done = match &away {
                Some(why) => vec![Err(BrokerError::NotDone(String::clone(why))); ids.len()],
                None => join_all(ids.iter().map(|id| self.0.broker.requeue(id))).await,
            };
            for (id, done) in ids.iter().zip(done) {
                if let Err(BrokerError::NotDone(why) | BrokerError::Unknown(why)) = &done {
                    away = Some(why.clone());
                }
                if let Ok(true) = done {
                    posted.insert(id.queue());
                }
                answers.push(done.map(drop).map_err(|problem| refused(id, "requeue", problem)));
            }
        }
        for queue in posted {
            self.carry(queue).await;
        }
        self.told_apart(&ids, answers, is_unknown).await
    }

    /// Permanently removes a task with its arguments and all its other data, and frees its biz id.
    /// Handles that wait for the task return that it is forgotten. Returns whether there was
    /// anything to remove: an unknown task is no error, and so neither is a repeated delete.
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if a worker holds the task, or if the task has succeeded.
    /// [Cancel](Self::cancel) a running task first, and delete it when it has ended. After a
    /// success, Redis stores only the result, until its `result_ttl` is over.
    /// [`Error::is_invalid`] if the id is that of a group.
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is
    /// safe to repeat.
    pub async fn delete(&self, id: &TaskId) -> Result<DeleteAnswer, Error> {
        self.delete_all([id.clone()]).await.pop().expect("an answer for each id")
    }

    /// Applies [`delete`](Self::delete) to many tasks, 128 of a queue per call, each on its own.
    /// Returns the answer of each task, in order.
    ///
    /// If Redis can't be reached, the remaining calls are not sent, and their answers are that
    /// error.
    ///
    /// To remove all tasks in a state of a queue, delete page by page:
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::TaskState;
    ///
    /// let (inspector, mut after) = (client.inspector(), None);
    /// loop {
    ///     let page = inspector.list("mail", TaskState::Dead, after.as_ref(), 128).await?;
    ///     for deleted in client.delete_all(page.rows.into_iter().map(|row| row.id)).await {
    ///         deleted?;
    ///     }
    ///     after = page.next;
    ///     if after.is_none() {
    ///         return Ok(());
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn delete_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<DeleteAnswer, Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let (done, posted) = self.each(Verb::Delete, &ids).await;
        self.carry_all(posted).await;
        let answer =
            |is_done| if is_done { DeleteAnswer::Deleted } else { DeleteAnswer::NothingThere };
        let answers = done.into_iter().map(|done| done.map(answer)).collect();
        let is_nothing = |answer: &_| matches!(answer, Ok(DeleteAnswer::NothingThere));
        self.told_apart(&ids, answers, is_nothing).await
    }

    /// Stops the claims of a queue. Running tasks continue. Returns whether the queue is known: a
    /// task was submitted to it, or a worker has served it. The name of an unknown queue may be
    /// mistyped. The queue is paused nevertheless, before its first task arrives, and
    /// [`Inspector::queues`](crate::Inspector::queues) lists it until it is resumed.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::QueueAnswer;
    ///
    /// if client.pause("mail").await? == QueueAnswer::Unknown {
    ///     eprintln!("no task was ever in queue mail: is that its name?");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no queue can have this name; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`], as for [`cancel`](Self::cancel).
    pub async fn pause(&self, queue: impl AsRef<str>) -> Result<QueueAnswer, Error> {
        let queue = &QueueName::new(queue)?;
        let paused = match self.0.broker.pause(queue).await {
            Ok(false) => self.list_paused(queue).await.map(|()| false),
            answer => answer,
        };
        paused.map(ANSWER).map_err(|problem| of_queue("pause", queue, problem))
    }

    /// Lists a paused queue that has no task and no worker, so that operators see it. A full Redis
    /// may refuse this.
    pub(super) async fn list_paused(&self, queue: &QueueName) -> Result<(), BrokerError> {
        match self.0.broker.announce(queue).await {
            // The queue is paused already, so this is not the whole answer.
            Err(BrokerError::NotDone(why)) => Err(BrokerError::Unknown(why)),
            Err(BrokerError::Full) => Ok(()),
            answer => answer,
        }
    }

    /// Restarts the claims of a queue. Returns whether the queue is known, as
    /// [`pause`](Self::pause) does.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn resume(&self, queue: impl AsRef<str>) -> Result<QueueAnswer, Error> {
        let queue = &QueueName::new(queue)?;
        let is_known = self.0.broker.resume(queue).await;
        is_known.map(ANSWER).map_err(|problem| of_queue("resume", queue, problem))
    }

    /// Applies a verb to many tasks, [`BATCH_MAX`] of a queue per call. Returns for each, in order,
    /// whether the verb itself was done, and the queues with effects for a relay.
    pub(super) async fn each(
        &self,
        verb: Verb,
        ids: &[TaskId],
    ) -> (Vec<Result<bool, Error>>, BTreeSet<QueueName>) {
        let mut of_queues: BTreeMap<&QueueName, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            of_queues.entry(id.queue()).or_default().push(place);
        }
        let (mut answers, mut away, mut posted) = (BTreeMap::new(), None, BTreeSet::new());
        for (queue, places) in of_queues {
            for places in places.chunks(BATCH_MAX) {
                let asked: Vec<&TaskId> = places.iter().map(|place| &ids[*place]).collect();
                let done = match &away {
                    Some(why) => Err(BrokerError::NotDone(String::clone(why))),
                    None => self.ask(verb, queue, &asked).await,
                };
                if let Err(BrokerError::NotDone(why) | BrokerError::Unknown(why)) = &done {
                    away = Some(why.clone());
                }
                if let Ok((_, true)) = done {
                    posted.insert(queue.clone());
                }
                for (nth, place) in places.iter().enumerate() {
                    let id = &ids[*place];
                    let answer = match &done {
                        Ok((done, _)) => done[nth].map_err(|state| verb.refused(id, state)),
                        Err(problem) => Err(refused(id, verb.as_str(), problem.clone())),
                    };
                    answers.insert(*place, answer);
                }
            }
        }
        (answers.into_values().collect(), posted)
    }

    /// Tasks of other queues that wait for these learn of it at once.
    async fn carry_all(&self, posted: BTreeSet<QueueName>) {
        for queue in posted {
            self.carry(&queue).await;
        }
    }

    /// Cancels tasks as [`cancel_all`](Self::cancel_all), and returns the queues with effects,
    /// which the caller carries.
    pub(super) async fn cancel_and_tell_later(
        &self,
        ids: Vec<TaskId>,
    ) -> (Vec<Result<bool, Error>>, BTreeSet<QueueName>) {
        self.each(Verb::Cancel, &ids).await
    }

    /// Returns for each task of one queue what was done, or the state that prevents the verb; and
    /// whether tasks of other queues are concerned.
    async fn ask(
        &self,
        verb: Verb,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<(Vec<Result<bool, TaskState>>, bool), BrokerError> {
        let broker = &self.0.broker;
        Ok(match verb {
            Verb::Cancel => {
                let (done, posted) = broker.cancel_many(queue, ids).await?;
                let answer = |done| match done {
                    Cancelled::Done => Ok(true),
                    Cancelled::Requested => Ok(false),
                    Cancelled::Ended(state) => Err(state),
                };
                (done.into_iter().map(answer).collect(), posted)
            }
            Verb::Delete => {
                let (done, posted) = broker.delete_many(queue, ids).await?;
                let answer = |done| match done {
                    Deleted::Done => Ok(true),
                    Deleted::Left(TaskState::Forgotten) => Ok(false),
                    Deleted::Left(state) => Err(state),
                };
                (done.into_iter().map(answer).collect(), posted)
            }
            Verb::RunNow => {
                let answer = |left| match left {
                    None => Ok(true),
                    Some(TaskState::Ready | TaskState::Working) => Ok(false),
                    Some(state) => Err(state),
                };
                let left = broker.run_now(queue, ids).await?;
                (left.into_iter().map(answer).collect(), false)
            }
        })
    }
}

/// Names the answer of a script, which is whether the queue was used before.
const ANSWER: fn(bool) -> QueueAnswer =
    |was_used| if was_used { QueueAnswer::Known } else { QueueAnswer::Unknown };

pub(super) fn of_queue(verb: &str, queue: &QueueName, problem: BrokerError) -> Error {
    match problem {
        BrokerError::Unknown(why) => {
            Error::unknown_operation(format!("{verb} of queue {queue}"), Vec::new(), why)
        }
        problem => problem.into(),
    }
}

pub(super) fn of_lane(queue: &QueueName, key: &str, problem: BrokerError) -> Error {
    match problem {
        BrokerError::Refused(Refusal::Newer, needs) => Error::outdated(&needs),
        BrokerError::Unknown(why) => {
            let what = format!("cancel of lane {key:?} of queue {queue}");
            Error::unknown_operation(what, Vec::new(), why)
        }
        problem => problem.into(),
    }
}

/// A verb that one script applies to many tasks.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Cancel,
    Delete,
    RunNow,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Delete => "delete",
            Self::RunNow => "run_now",
        }
    }

    /// Returns the error for a task in this state.
    fn refused(self, id: &TaskId, state: TaskState) -> Error {
        match state {
            TaskState::Forgotten => Error::forgotten(id.clone()),
            state => Error::wrong_state(id.clone(), state, self.as_str()),
        }
    }
}

const NOT_REQUEUED: &str =
    "requeued; submit one of these tasks without its `after`, and delete the other";

/// Returns the error of a verb for the caller.
pub(super) fn refused(id: &TaskId, verb: &'static str, problem: BrokerError) -> Error {
    let (refusal, detail) = match problem {
        BrokerError::Refused(Refusal::Newer, needs) => return Error::outdated(&needs),
        BrokerError::Refused(refusal, detail) => (refusal, detail),
        BrokerError::Unknown(why) => {
            return Error::unknown_operation(format!("{verb} of {id}"), vec![id.clone()], why);
        }
        problem => return problem.into(),
    };
    if refusal == Refusal::Duplicate {
        let (owner, window_end_ms) = detail.split_once(' ').unwrap_or((&detail, ""));
        if let Ok(owner) = TaskId::from_stored(id.queue().clone(), owner) {
            return Error::duplicate(owner, window_end_ms.parse().ok());
        }
    }
    if refusal == Refusal::Cycle {
        let path = detail.split(',').filter(|between| !between.is_empty());
        let path = path.map(|between| TaskId::from_stored(id.queue().clone(), between));
        let path = path.filter_map(Result::ok).collect();
        return Error::waits_for_itself(id.to_string(), path, NOT_REQUEUED);
    }
    match TaskState::from_word(&detail) {
        Some(TaskState::Forgotten) | None => Error::forgotten(id.clone()),
        Some(state) => Error::wrong_state(id.clone(), state, verb),
    }
}
