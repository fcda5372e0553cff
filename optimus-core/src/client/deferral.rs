//! Calls that wait for the commit of a transaction: [`Deferral`]. A crate that knows a database
//! runs the transaction, and stores the calls in it.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::task::futures::TaskLocalFuture;

use super::{Client, OwnClient, TaskHandle, builder::PAYLOAD_LIMIT};
use crate::{
    Error,
    broker::SizeLimit,
    call_submit::Submit,
    id::{QueueName, TaskId},
    platform,
    submission::Submission,
};

/// The calls of a transaction that is running: while a future [within](Self::within) it is polled,
/// `.perform_async()` adds to them and sends nothing.
#[derive(Debug)]
pub struct Deferral(Arc<OwnClient>);

/// What a deferral has.
pub(super) struct Deferred {
    client: Client,
    calls: Mutex<Vec<Submission>>,
}

impl Deferral {
    /// Begins to keep the calls for the client of the code that is running. `None` if it has none:
    /// then it can't submit anyway.
    pub fn begin() -> Option<Self> {
        let client = Client::current().ok()?;
        Some(Self(OwnClient::deferring(Deferred { client, calls: Mutex::default() })))
    }

    /// Wraps the future of a transaction.
    pub fn within<F: Future>(&self, part: F) -> TaskLocalFuture<Arc<OwnClient>, F> {
        self.0.within(part)
    }

    /// Takes the calls so far, in order.
    pub fn take(&self) -> Vec<Submission> {
        self.0.deferred().map(Deferred::take).unwrap_or_default()
    }
}

impl Deferred {
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    fn take(&self) -> Vec<Submission> {
        mem::take(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether this is a call of the transaction that is running.
    fn has(&self, id: &TaskId) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().any(|call| call.id == *id)
    }

    pub(super) fn add(&self, call: Submission) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl Client {
    /// Submits a call for the code that is running, or keeps it until its transaction is committed.
    pub(crate) async fn perform<C: Submit>(call: C) -> Result<TaskHandle<C::Output>, Error> {
        let own = OwnClient::current();
        let Some(deferred) = own.as_ref().and_then(|own| own.deferred()) else {
            return Self::current()?.submit(call).await;
        };
        let submission = deferred.client.admit(call).await?;
        let handle = deferred.client.promised(&submission);
        deferred.add(submission);
        Ok(handle)
    }

    /// Refuses to wait for a call in the transaction that has yet to submit it.
    pub(super) fn check_awaited(id: &TaskId) -> Result<(), Error> {
        let own = OwnClient::current();
        if own.as_ref().and_then(|own| own.deferred()).is_some_and(|deferred| deferred.has(id)) {
            return Err(Error::invalid(format!(
                "task {id} is submitted after the commit of the transaction that waits for it \
                 here; return its handle from the transaction, and wait after the commit"
            )));
        }
        Ok(())
    }

    /// Returns the client of the code that is running, for a verb that can't wait for a commit.
    pub(crate) fn current_at_once(what: &str) -> Result<Self, Error> {
        if OwnClient::current().is_some_and(|own| own.deferred().is_some()) {
            return Err(Error::invalid(format!(
                "{what} can't wait for the commit of a transaction; submit a task in the \
                 transaction whose handler submits {what}, or submit it after the commit"
            )));
        }
        Self::current()
    }

    /// Passes a call through the layers of this client, and checks it. Nothing is sent; for crates
    /// that store calls.
    ///
    /// # Errors
    /// [`Error::is_invalid`], [`Error::is_too_large`], [`Error::is_refused`].
    #[doc(hidden)]
    pub async fn admit<C: Submit>(&self, call: C) -> Result<Submission, Error> {
        let mut submission = call.into_submission()?;
        self.passage().pass(&mut submission).await?;
        self.check(submission)
    }

    /// Does as [`admit`](Self::admit) with the client of the code that is running. Without one, no
    /// layer is called.
    ///
    /// # Errors
    /// The errors of [`admit`](Self::admit).
    #[doc(hidden)]
    pub async fn admit_here<C: Submit>(call: C) -> Result<Submission, Error> {
        if let Ok(client) = Self::current() {
            return client.admit(call).await;
        }
        let submission = call.into_submission()?;
        Self::check_here(&submission)?;
        Ok(submission)
    }

    /// Refuses a call that the client of the code that is running would not submit. Without one,
    /// the default limits apply.
    ///
    /// # Errors
    /// [`Error::is_invalid`], [`Error::is_too_large`].
    #[doc(hidden)]
    pub fn check_here(submission: &Submission) -> Result<(), Error> {
        if let Ok(client) = Self::current() {
            return client.check_one(submission);
        }
        let limit = SizeLimit::new(PAYLOAD_LIMIT, "ClientBuilder::payload_limit");
        submission.check(limit, platform::now_ms())
    }

    /// Refuses a call that this client would not submit, without calling its layers again.
    ///
    /// # Errors
    /// [`Error::is_invalid`], [`Error::is_too_large`].
    #[doc(hidden)]
    pub fn check_stored(&self, submission: &Submission) -> Result<(), Error> {
        self.check_one(submission)
    }

    /// Returns a handle for a call that is not in Redis yet.
    #[doc(hidden)]
    pub fn promised<T>(&self, submission: &Submission) -> TaskHandle<T> {
        let handle = TaskHandle::promised(self.clone(), submission.id.clone());
        if submission.returns_nothing { handle.without_result() } else { handle }
    }

    /// Carries to other queues what a stored call has asked of them; a worker would do it soon.
    #[doc(hidden)]
    pub async fn carry_asks(&self, queue: &QueueName) {
        self.carry(queue).await;
    }

    /// Returns the client of the code that is running.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if there is none.
    #[doc(hidden)]
    pub fn of_caller() -> Result<Self, Error> {
        Self::current()
    }
}
