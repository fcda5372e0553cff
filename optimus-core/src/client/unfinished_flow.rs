//! The steps of a flow whose submit does not end: [`UnfinishedFlow`].

use std::time::Duration;

use tokio::{runtime::Handle, time::sleep};

use super::Client;
use crate::{Error, id::TaskId};

/// How often the removal is tried, and the time between two tries.
const TRIES: u32 = 120;
const AGAIN: Duration = Duration::from_secs(1);

/// The steps that a submit has sent before the first one of the flow. None of them can run. If the
/// submit is dropped, or ends without an answer, before it has sent the first one, they would wait
/// for a day and keep their biz ids, so they are removed in the background.
pub(super) struct UnfinishedFlow {
    client: Client,
    steps: Vec<TaskId>,
}

impl UnfinishedFlow {
    pub(super) fn of(client: &Client) -> Self {
        Self { client: client.clone(), steps: Vec::new() }
    }

    /// Notes steps that are going to be sent, under ids that nobody else uses.
    pub(super) fn add(&mut self, steps: impl Iterator<Item = TaskId>) {
        self.steps.extend(steps);
    }

    /// Notes that the first step is sent, or that all steps are removed.
    pub(super) fn end(&mut self) {
        self.steps.clear();
    }
}

impl Drop for UnfinishedFlow {
    fn drop(&mut self) {
        if self.steps.is_empty() {
            return;
        }
        // Without a runtime, the process ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(remove(self.client.clone(), std::mem::take(&mut self.steps)));
        }
    }
}

async fn remove(client: Client, steps: Vec<TaskId>) {
    for _ in 0..TRIES {
        drop(client.cancel_all(steps.iter().cloned()).await);
        let deleted = client.delete_all(steps.iter().cloned()).await;
        let is_open = |problem: &Error| problem.is_unavailable() || problem.is_unknown_outcome();
        if !deleted.iter().any(|answer| answer.as_ref().is_err_and(is_open)) {
            return;
        }
        sleep(AGAIN).await;
    }
}
