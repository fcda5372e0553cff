//! Stores calls in a transaction of sqlx: [`PerformInTx`], [`submit_all_in_tx`].

use optimus_core::{Client, Submission, Submit};
use sqlx::Transaction;

use crate::{
    Dialect, Error, OutboxDb, OutboxRow, Promised,
    statement::{Statement, Value},
    wakeup,
};

/// The limits of one insert of many rows.
const ROWS_MAX: usize = 200;
const BYTES_MAX: usize = 1024 * 1024;

/// After a deadlock MySQL goes on without a transaction, and would store a call at once. Then it
/// keeps no savepoint either, so this fails.
const IS_OPEN: &str = "SAVEPOINT optimus_call; RELEASE SAVEPOINT optimus_call";

/// Types that can be submitted in a transaction: `Call` and `ErasedCall`.
pub trait PerformInTx: Submit + Sized + Send {
    /// Stores the call in this transaction. A [relay](crate::Relay) submits it after the commit,
    /// exactly once. If the transaction is rolled back, nothing was submitted.
    ///
    /// The call passes the layers of the installed client or, in a handler, those of its worker.
    /// No connection to Redis is needed.
    ///
    /// # Errors
    /// [`Error::Task`] for a call that can't be submitted, [`Error::Database`]. [`Error::Ended`]
    /// in MySQL after a deadlock, which ends the transaction.
    fn perform_in_tx<DB: OutboxDb>(
        self,
        tx: &mut Transaction<'_, DB>,
    ) -> impl Future<Output = Result<Promised<Self::Output>, Error>> + Send;
}

impl<C: Submit + Send> PerformInTx for C
where
    C::Output: 'static,
{
    async fn perform_in_tx<DB: OutboxDb>(
        self,
        tx: &mut Transaction<'_, DB>,
    ) -> Result<Promised<C::Output>, Error> {
        let submission = Client::admit_here(self).await?;
        let promised = Promised::of(&submission);
        insert::<DB>(tx, [&submission].into_iter()).await?;
        Ok(promised)
    }
}

/// Stores many calls in a transaction, 200 a statement, as
/// [`perform_in_tx`](PerformInTx::perform_in_tx) does. Returns the tasks in the order of the calls.
///
/// # Errors
/// [`Error::Task`] for the first call that can't be submitted; then no call of the list is stored.
/// [`Error::Database`], after which the transaction must be rolled back.
pub async fn submit_all_in_tx<DB: OutboxDb, C: Submit + Send>(
    tx: &mut Transaction<'_, DB>,
    calls: impl IntoIterator<Item = C>,
) -> Result<Vec<Promised<C::Output>>, Error> {
    let calls: Vec<C> = calls.into_iter().collect();
    let mut submissions = Vec::with_capacity(calls.len());
    for call in calls {
        submissions.push(Client::admit_here(call).await?);
    }
    let promised = submissions.iter().map(Promised::of).collect();
    insert::<DB>(tx, submissions.iter()).await?;
    Ok(promised)
}

/// Stores checked calls, and tells the relays of this process that a commit may follow.
pub(crate) async fn insert<DB: OutboxDb>(
    connection: &mut DB::Connection,
    submissions: impl Iterator<Item = &Submission> + Send,
) -> Result<(), Error> {
    if DB::DIALECT == Dialect::MySql {
        DB::run_plain(connection, IS_OPEN).await.map_err(Error::of_mark)?;
    }
    let mut rows: Vec<OutboxRow<()>> = Vec::new();
    for submission in submissions {
        let row = OutboxRow::of(submission);
        let bytes: usize = rows.iter().map(OutboxRow::bytes).sum();
        if rows.len() == ROWS_MAX || (!rows.is_empty() && bytes + row.bytes() > BYTES_MAX) {
            insert_rows::<DB>(connection, std::mem::take(&mut rows)).await?;
        }
        rows.push(row);
    }
    if !rows.is_empty() {
        insert_rows::<DB>(connection, rows).await?;
    }
    wakeup::stored();
    Ok(())
}

async fn insert_rows<DB: OutboxDb>(
    connection: &mut DB::Connection,
    rows: Vec<OutboxRow<()>>,
) -> Result<(), Error> {
    let holes = vec!["(?, ?, ?)"; rows.len()].join(", ");
    let sql = format!("INSERT INTO optimus_outbox (queue, id, body) VALUES {holes}");
    let mut insert = Statement::new(sql);
    if rows.len() > 1 {
        // Each number of rows is another text.
        insert = insert.once_only();
    }
    for row in rows {
        insert.values.push(Value::from(row.queue()));
        insert.values.push(Value::from(row.id()));
        insert.values.push(Value::from(row.into_body()));
    }
    DB::run(connection, insert).await?;
    Ok(())
}
