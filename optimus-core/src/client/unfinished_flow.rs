//! The parts of a flow whose submit does not end: [`UnfinishedFlow`].

use std::{mem, pin::Pin, time::Duration};

use tokio::{runtime::Handle, time::sleep};

use super::{Client, submit_all::Bulk, submit_batches::Answer};
use crate::{Error, id::TaskId, submission::Submission};

/// How often the removal is tried, and the time between two tries.
const TRIES: u32 = 120;
const AGAIN: Duration = Duration::from_secs(1);

/// The answer of each task that was sent.
type Answers = Vec<Result<(TaskId, Answer), Error>>;

/// Tasks on their way to Redis.
type Sending = Pin<Box<dyn Future<Output = Answers> + Send + Sync>>;

/// The parts of a flow that a submit has sent under ids that nobody else uses. Nobody can submit
/// them again. If the submit ends before it has sent the first step, the others would wait for a
/// day and keep their biz ids, so they are removed in the background.
pub(super) struct UnfinishedFlow {
    client: Client,
    parts: Parts,
    /// Whether the parts are removed when this is dropped.
    pub(super) is_unwanted: bool,
    sending: Option<Sending>,
}

/// Groups and steps of a flow.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) groups: Vec<TaskId>,
    pub(super) steps: Vec<TaskId>,
}

impl UnfinishedFlow {
    pub(super) fn of(client: &Client) -> Self {
        let (client, parts) = (client.clone(), Parts::default());
        Self { client, parts, is_unwanted: false, sending: None }
    }

    /// Notes steps that are going to be sent.
    pub(super) fn add(&mut self, steps: impl Iterator<Item = TaskId>) {
        self.parts.steps.extend(steps);
    }

    /// Notes a group that is going to be made.
    pub(super) fn add_group(&mut self, group: TaskId) {
        self.parts.groups.push(group);
    }

    /// Sends tasks and waits for their answers. What is under way when the submit is dropped is
    /// stored later, so a removal waits for the answers, too.
    pub(super) async fn send(&mut self, tasks: Vec<Submission>) -> Answers {
        let sending = Box::pin(send_all(self.client.clone(), tasks));
        let answers = self.sending.insert(sending).await;
        self.sending = None;
        answers
    }

    /// Removes the parts, and others whose ids the caller has given. If Redis does not answer, the
    /// parts are removed in the background. The others are not, because the caller may submit them
    /// again meanwhile.
    pub(super) async fn undo(&mut self, others: Parts) {
        self.is_unwanted = true;
        let Parts { groups, steps } = &self.parts;
        let groups = [others.groups.as_slice(), groups].concat();
        let steps = [others.steps.as_slice(), steps].concat();
        self.is_unwanted = Parts { groups, steps }.remove(&self.client).await.is_err();
    }
}

impl Drop for UnfinishedFlow {
    fn drop(&mut self) {
        let Parts { groups, steps } = &self.parts;
        if !self.is_unwanted || (groups.is_empty() && steps.is_empty()) {
            return;
        }
        // Without a runtime, the process ends.
        if let Ok(runtime) = Handle::try_current() {
            let (parts, sending) = (mem::take(&mut self.parts), self.sending.take());
            runtime.spawn(remove_later(self.client.clone(), parts, sending));
        }
    }
}

async fn send_all(client: Client, tasks: Vec<Submission>) -> Answers {
    let mut bulk = Bulk::new(&client.0.submitter);
    for task in tasks {
        bulk.add(task).await;
    }
    bulk.answers().await
}

async fn remove_later(client: Client, parts: Parts, sending: Option<Sending>) {
    if let Some(sending) = sending {
        drop(sending.await);
    }
    for _ in 0..TRIES {
        if parts.remove(&client).await.is_ok() {
            return;
        }
        sleep(AGAIN).await;
    }
}

impl Parts {
    /// Cancels and removes what is stored of them. An error means that Redis did not answer.
    async fn remove(&self, client: &Client) -> Result<(), Error> {
        // First of all, because a step may be one that runs after its group was cancelled.
        let cancelled = client.cancel_all(self.steps.iter().cloned()).await;
        cancelled.into_iter().try_for_each(answered)?;
        for group in &self.groups {
            answered(client.remove_group(group).await)?;
        }
        let deleted = client.delete_all(self.steps.iter().cloned()).await;
        deleted.into_iter().try_for_each(answered)
    }
}

/// Ignores errors with which Redis has answered: there is nothing to remove, or it runs.
fn answered<T>(answer: Result<T, Error>) -> Result<(), Error> {
    let is_open = |problem: &Error| problem.is_unavailable() || problem.is_unknown_outcome();
    answer.map_or_else(|problem| if is_open(&problem) { Err(problem) } else { Ok(()) }, |_| Ok(()))
}
