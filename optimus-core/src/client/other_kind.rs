//! The errors of calls that find nothing under an id, which may be a group's instead of a task's.

use futures_util::future::join_all;

use super::Client;
use crate::{Error, id::TaskId, state::TaskState};

impl Client {
    /// Returns the error of a call about a task of which nothing is known: the id may be that of a
    /// group.
    pub(super) async fn no_task(&self, id: &TaskId) -> Error {
        match self.broker().group(id).await {
            Ok(Some(_)) => Error::invalid(format!(
                "{id} is a group, not a task: use `client.group(id)`, which has `progress`, \
                 `results` and `cancel`; requeue or delete its members by their own ids"
            )),
            _ => Error::forgotten(id.clone()),
        }
    }

    /// Returns the error of a call about a group of which nothing is known: the id may be that of a
    /// task.
    pub(super) async fn no_group(&self, id: &TaskId) -> Error {
        match self.broker().state_of(id, None).await {
            Ok(TaskState::Forgotten) | Err(_) => Error::group_forgotten(id.clone()),
            Ok(state) => Error::invalid(format!(
                "{id} is a task, not a group, and is {state}: use `client.handle(id)`, which has \
                 `status`, `result` and `cancel`"
            )),
        }
    }

    /// Returns the answers about these tasks. An answer that nothing was found becomes an error if
    /// the id is that of a group.
    pub(super) async fn told_apart<T>(
        &self,
        ids: &[TaskId],
        answers: Vec<Result<T, Error>>,
        is_nothing: fn(&Result<T, Error>) -> bool,
    ) -> Vec<Result<T, Error>> {
        let pairs = ids.iter().zip(answers);
        let told = pairs.map(|(id, answer)| async move {
            if !is_nothing(&answer) {
                return answer;
            }
            let problem = self.no_task(id).await;
            if problem.is_invalid() { Err(problem) } else { answer }
        });
        join_all(told).await
    }
}

/// Whether an answer is that nothing is known of the task.
pub(super) fn is_unknown<T>(answer: &Result<T, Error>) -> bool {
    answer.as_ref().is_err_and(Error::is_forgotten)
}
