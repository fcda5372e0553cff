//! A call as a row of the outbox, for drivers other than sqlx: [`OutboxRow`].

use std::{fmt, marker::PhantomData};

use optimus_core::{Client, Submission, Submit, TaskId};

use crate::{Dialect, Error, Promised, wakeup};

/// A call as a row of the table `optimus_outbox`. Insert it with any driver in your transaction;
/// the relay submits it after the commit.
///
/// ```
/// # use optimus_core::{BoxError, Context, Task, TaskOptions};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Charge { order: u32 }
/// # impl Task for Charge {
/// #     const NAME: &'static str = "charge";
/// #     type Output = ();
/// #     async fn run(self, _: Context) -> Result<(), BoxError> { Ok(()) }
/// # }
/// # fn charge(order: u32) -> optimus_core::Call<Charge> { Charge { order }.call() }
/// # struct Transaction;
/// # impl Transaction { fn execute(&self, _: &str, _: (&str, &str, &[u8])) {} }
/// # let tx = Transaction;
/// use optimus_sql::{Dialect, IntoOutboxRow as _};
///
/// let row = charge(7).outbox_row()?;
/// tx.execute(row.sql(Dialect::Sqlite), (row.queue(), row.id(), row.body()));
/// # Ok::<(), optimus_sql::Error>(())
/// ```
pub struct OutboxRow<T> {
    submission: Submission,
    id: String,
    body: Vec<u8>,
    output: PhantomData<fn() -> T>,
}

/// Types that can be stored in the outbox: `Call` and `ErasedCall`.
pub trait IntoOutboxRow: Submit + Sized {
    /// Checks and encodes the call. Its id is fixed now. No layer of a client is called; use
    /// [`perform_in_tx`](crate::PerformInTx::perform_in_tx) for that.
    ///
    /// # Errors
    /// [`Error::Task`] for options or arguments that can't be stored.
    fn outbox_row(self) -> Result<OutboxRow<Self::Output>, Error> {
        let submission = self.into_submission()?;
        Client::check_here(&submission)?;
        wakeup::stored();
        Ok(OutboxRow::of(&submission))
    }
}

impl<C: Submit> IntoOutboxRow for C {}

impl<T> OutboxRow<T> {
    pub(crate) fn of(submission: &Submission) -> Self {
        let (id, body) = (submission.id().uuid().to_string(), submission.to_bytes());
        Self { submission: submission.without_arguments(), id, body, output: PhantomData }
    }

    /// Returns the statement that inserts the row. Its three parameters are
    /// [`queue`](Self::queue), [`id`](Self::id) and [`body`](Self::body), as `$1`, `$2`, `$3` for
    /// PostgreSQL and as `?` for the others.
    pub fn sql(&self, dialect: Dialect) -> &'static str {
        dialect.insert()
    }

    /// Returns the first parameter: the name of the queue.
    pub fn queue(&self) -> &str {
        self.submission.id().queue().as_str()
    }

    /// Returns the second parameter: the id in the queue, as the text of a uuid.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the third parameter: the call as bytes.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the id of the task.
    pub fn task_id(&self) -> &TaskId {
        self.submission.id()
    }

    /// Returns the task that will be, for code that awaits it.
    pub fn promised(&self) -> Promised<T> {
        Promised::of(&self.submission)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }
}

impl<T> fmt::Debug for OutboxRow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxRow")
            .field("id", self.task_id())
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
