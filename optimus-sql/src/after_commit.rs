//! The light form without a table: [`AfterCommit`].

use optimus_core::{Client, ErasedCall, Submit, TaskHandle, Value};

use crate::Error;

/// Calls that are submitted after a commit, without a table. If it is dropped, nothing is
/// submitted.
///
/// **There is a gap**: if the process ends between the commit and [`submit`](Self::submit), or if
/// Redis is away then, the calls are lost although the transaction is committed. Use it for work
/// that may be lost, such as refreshing a cache.
/// [`perform_in_tx`](crate::PerformInTx::perform_in_tx) has no gap.
#[derive(Debug, Default)]
#[must_use = "nothing is submitted until `submit` is called after the commit"]
pub struct AfterCommit(Vec<ErasedCall>);

/// Types that can wait for a commit: `Call` and `ErasedCall`.
pub trait PerformAfter: Submit + Sized {
    /// Adds the call to those that are submitted after the commit.
    ///
    /// # Errors
    /// [`Error::Task`] for options or arguments that can't be stored.
    fn perform_after(self, scope: &mut AfterCommit) -> Result<(), Error> {
        scope.0.push(ErasedCall::of(self)?);
        Ok(())
    }
}

impl<C: Submit> PerformAfter for C {}

impl AfterCommit {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Submits the calls, through the installed client or, in a handler, that of its worker. Call
    /// it after the commit.
    ///
    /// # Errors
    /// [`Error::Task`] with the first call that was not accepted.
    pub async fn submit(self) -> Result<Vec<TaskHandle<Value>>, Error> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let submitted = Client::of_caller()?.submit_all(self.0).await;
        Ok(submitted.map_err(optimus_core::Error::from)?)
    }
}
