//! A task that a transaction has promised: [`Promised`].

use std::{fmt, marker::PhantomData, time::Duration};

use optimus_core::{Client, Submission, TaskHandle, TaskId};
use serde::de::DeserializeOwned;

use crate::Error;

/// A task whose call is stored in a transaction. It is submitted after the commit; if the
/// transaction is rolled back, it never is. Dropping this value changes nothing.
pub struct Promised<T> {
    submission: Submission,
    output: PhantomData<fn() -> T>,
}

impl<T> Promised<T> {
    pub(crate) fn of(submission: &Submission) -> Self {
        // Only its id and the type of its result matter from now on.
        let submission = submission.without_arguments();
        Self { submission, output: PhantomData }
    }

    /// Returns the id that the task will have. If another task holds its biz id at that time, that
    /// task stays, and this id is never used. The [handle](Self::handle) finds that task.
    pub fn id(&self) -> &TaskId {
        self.submission.id()
    }

    /// Returns the handle of a client. Its waits begin before the task is in Redis, and last until
    /// the task has ended. Call them after the commit: until then the task can't begin. After a
    /// rollback they never end, so limit them with `result_within`. Until a relay has submitted the
    /// task, its status is [`Forgotten`](optimus_core::TaskState::Forgotten).
    pub fn handle(&self, client: &Client) -> TaskHandle<T> {
        client.promised(&self.submission)
    }
}

impl<T: DeserializeOwned + 'static> Promised<T> {
    /// Waits for the task's end through the installed client, or in a handler through that of its
    /// worker, no longer than `timeout`. Call it after the commit.
    ///
    /// # Errors
    /// Those of [`TaskHandle::result_within`].
    pub async fn result_within(&self, timeout: Duration) -> Result<T, Error> {
        let client = Client::of_caller()?;
        Ok(self.handle(&client).result_within(timeout).await?)
    }
}

impl<T> fmt::Debug for Promised<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promised({})", self.id())
    }
}
