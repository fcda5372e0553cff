//! Stores the tasks of a flow: first they pass the layers and checks, and then they are sent.

use std::collections::BTreeMap;

use super::{submit_batches::Answer, submit_flow::Store};
use crate::{Error, broker::Receipt, id::TaskId, submission::Submission};

impl Store<'_> {
    /// Stores tasks, each of which has an id that nobody else uses. Returns the answers of those
    /// that are stored, and the error of another one.
    pub(super) async fn tasks(
        &mut self,
        tasks: impl Iterator<Item = Submission>,
    ) -> (Vec<(TaskId, Answer)>, Option<Error>) {
        match self.pass(tasks).await {
            Ok(passed) => self.send(passed).await,
            Err(problem) => (Vec::new(), Some(problem)),
        }
    }

    /// Passes tasks through layers and checks. If one of them is refused, none may be sent: the
    /// others could run.
    pub(super) async fn pass(
        &self,
        tasks: impl Iterator<Item = Submission>,
    ) -> Result<Vec<Submission>, Error> {
        let (mut passage, mut passed) = (self.client.passage(), Vec::new());
        for mut submission in tasks {
            passage.pass(&mut submission).await?;
            passed.push(self.client.check(submission)?);
        }
        Ok(passed)
    }

    /// Sends tasks that have passed, as [`tasks`](Self::tasks).
    pub(super) async fn send(
        &mut self,
        tasks: Vec<Submission>,
    ) -> (Vec<(TaskId, Answer)>, Option<Error>) {
        let mut biz_ids = BTreeMap::new();
        for task in &tasks {
            if let Some(biz_id) = &task.biz_id {
                biz_ids.insert(task.id.clone(), (task.task.clone(), biz_id.clone()));
            }
        }
        let (mut stored, mut failed) = (Vec::new(), None);
        for answer in self.unfinished.send(tasks).await {
            match answer {
                Ok((id, Answer { receipt: Receipt::Duplicate(owner), .. })) if owner != id => {
                    failed.get_or_insert(match biz_ids.get(&id) {
                        Some((task, biz_id)) => Error::step_duplicate(task, biz_id, owner),
                        None => Error::duplicate(owner, None),
                    });
                }
                Ok((id, answer)) => stored.push((id, answer)),
                Err(problem) => failed = Some(problem),
            }
        }
        (stored, failed)
    }
}
