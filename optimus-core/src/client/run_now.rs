//! Lets tasks run before they are due.

use super::{Client, operate::Verb, other_kind::is_unknown};
use crate::{Error, RunNowAnswer, id::TaskId};

impl Client {
    /// Makes a delayed task, or one that waits for its next attempt, due now. The next claim of its
    /// queue moves it on, so it still waits for its lane and its limits.
    ///
    /// ```no_run
    /// # async fn doc(client: optimus_core::Client, id: optimus_core::TaskId)
    /// # -> Result<(), optimus_core::Error> {
    /// // The service is back: do not wait for the back-off of this task.
    /// client.run_now(&id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if the task is blocked or has ended; [`Error::is_forgotten`] if
    /// the store has no data about it; [`Error::is_invalid`] if the id is that of a group;
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is safe
    /// to repeat.
    pub async fn run_now(&self, id: &TaskId) -> Result<RunNowAnswer, Error> {
        self.run_now_all([id.clone()]).await.pop().expect("an answer for each id")
    }

    /// Applies [`run_now`](Self::run_now) to many tasks, 128 of a queue per call, each on its own.
    /// Returns the answer of each task, in order.
    ///
    /// If Redis can't be reached, the remaining calls are not sent, and their answers are that
    /// error.
    pub async fn run_now_all(
        &self,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Vec<Result<RunNowAnswer, Error>> {
        let ids: Vec<TaskId> = ids.into_iter().collect();
        let (done, _) = self.each(Verb::RunNow, &ids).await;
        let answer = |is_due| if is_due { RunNowAnswer::Due } else { RunNowAnswer::Started };
        let answers = done.into_iter().map(|done| done.map(answer)).collect();
        self.told_apart(&ids, answers, is_unknown).await
    }
}
