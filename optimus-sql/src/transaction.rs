//! A transaction in which `.perform_async()` waits for the commit: [`transaction`].

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use optimus_core::{Deferral, Submission};
use sqlx::{Pool, Transaction};

use crate::{
    Dialect, Error, OutboxDb,
    perform_in_tx::insert,
    statement::{Kind, Statement, Value},
    unsent::look_after_commit,
    wakeup,
    whole::whole,
};

/// Runs a transaction: begins it, runs the body, and commits it. If the body returns an error or
/// panics, or the future is dropped in the body, it is rolled back. A future that is dropped before
/// or after the body leaves nothing open: what has begun is rolled back, and a commit goes on.
///
/// Inside the body, `.perform_async()` stores its call in the transaction. So the same code submits
/// at once outside of a transaction, and with the commit inside one. This holds for the body
/// itself, not for futures that it spawns. `client.submit(…)` submits at once anywhere. Flows of
/// tasks wait for the commit, too; groups refuse to be submitted here.
///
/// A call of `.perform_async()` is stored at the end of the body, also if it was made inside a
/// savepoint that is rolled back. In a savepoint, use
/// [`perform_in_tx`](crate::PerformInTx::perform_in_tx).
///
/// A task of the transaction begins after the commit, so a wait for its result in the body is an
/// error.
///
/// In SQLite the transaction is immediate, so it never fails because another one has written.
///
/// At most once a minute, the outbox is read after the commit, in the background and with an idle
/// connection of the pool. A warning is logged if no [relay](crate::Relay) sends the calls.
///
/// # Errors
/// The error of the body. Converted: [`Error::Database`] if the transaction could not begin or was
/// not committed; [`Error::Ended`] if the database has ended it before its commit, because the body
/// has passed over an error.
pub async fn transaction<DB, T, E, F, Fut>(pool: &Pool<DB>, body: F) -> Result<T, E>
where
    DB: OutboxDb,
    E: From<Error>,
    F: FnOnce(Tx<DB>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let begun = whole(begin(pool.clone(), DB::DIALECT.begin_marked())).await?;
    let (tx, returned, calls) = run(begun, body).await?;
    whole(end(tx, calls)).await?;
    look_after_commit(pool);
    Ok(returned)
}

/// The transaction of a body: it is used as a [`Transaction`] of sqlx. Dropping it changes nothing:
/// what the body returns decides whether the transaction is committed.
///
/// In the body, the connection is `&mut **tx`. Functions that a body calls take the transaction of
/// sqlx and get `&mut tx`:
///
/// ```no_run
/// # async fn sign_up(pool: &sqlx::SqlitePool) -> Result<(), optimus_sql::Error> {
/// use sqlx::{Sqlite, Transaction};
///
/// async fn save(tx: &mut Transaction<'_, Sqlite>, user: i64) -> Result<(), optimus_sql::Error> {
///     sqlx::query("INSERT INTO users VALUES (?)").bind(user).execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// optimus_sql::transaction(pool, async |mut tx| save(&mut tx, 7).await).await
/// # }
/// ```
#[derive(Debug)]
pub struct Tx<DB: OutboxDb> {
    /// It is there until this value is dropped.
    tx: Option<Transaction<'static, DB>>,
    home: Arc<Mutex<Option<Transaction<'static, DB>>>>,
}

/// Where the transaction is after its body.
pub(crate) struct Home<DB: OutboxDb>(Arc<Mutex<Option<Transaction<'static, DB>>>>);

impl<DB: OutboxDb> Home<DB> {
    /// Takes the transaction, if the body has dropped it.
    pub(crate) fn take(&self) -> Option<Transaction<'static, DB>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<DB: OutboxDb> Tx<DB> {
    pub(crate) fn home(&self) -> Home<DB> {
        Home(self.home.clone())
    }
}

impl<DB: OutboxDb> Deref for Tx<DB> {
    type Target = Transaction<'static, DB>;

    fn deref(&self) -> &Self::Target {
        self.tx.as_ref().expect("it is there until the drop")
    }
}

impl<DB: OutboxDb> DerefMut for Tx<DB> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.tx.as_mut().expect("it is there until the drop")
    }
}

impl<DB: OutboxDb> Drop for Tx<DB> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.tx.take();
    }
}

/// Begins a transaction. The future must not be dropped while it runs: see [`whole`].
pub(crate) async fn begin<DB: OutboxDb>(
    pool: Pool<DB>,
    sql: &'static str,
) -> Result<Transaction<'static, DB>, Error> {
    Ok(pool.begin_with(sql).await?)
}

/// Stores the calls that a body has deferred, and commits.
async fn end<DB: OutboxDb>(
    mut tx: Transaction<'static, DB>,
    calls: Vec<Submission>,
) -> Result<(), Error> {
    store::<DB>(&mut tx, &calls).await?;
    check_mark::<DB>(&mut tx).await?;
    commit(tx).await
}

/// Refuses to commit a transaction that the database has ended. It does not say so at the commit:
/// PostgreSQL answers with a rollback, and MySQL commits what came after the end.
pub(crate) async fn check_mark<DB: OutboxDb>(connection: &mut DB::Connection) -> Result<(), Error> {
    let sql = DB::DIALECT.read_mark();
    if DB::DIALECT != Dialect::Postgres {
        let marked = DB::run_plain(connection, sql).await.map_err(Error::of_mark);
        if matches!(marked, Err(Error::Ended)) && DB::DIALECT == Dialect::Sqlite {
            // A rollback outside of a transaction fails, and sqlx would keep counting it as open.
            DB::run_plain(connection, "BEGIN").await?;
        }
        return marked;
    }
    let rows = DB::read(connection, Statement::new(sql), &[Kind::Text]).await;
    let rows = rows.map_err(Error::of_mark)?;
    let is_open = rows.first().is_some_and(|row| row[0] == Value::from("open"));
    if is_open { Ok(()) } else { Err(Error::Ended) }
}

/// What a body leaves: its transaction, what it has returned, and the calls that it has deferred.
pub(crate) type Left<DB, T> = (Transaction<'static, DB>, T, Vec<Submission>);

/// Runs the body.
pub(crate) async fn run<DB, T, E, F, Fut>(
    tx: Transaction<'static, DB>,
    body: F,
) -> Result<Left<DB, T>, E>
where
    DB: OutboxDb,
    E: From<Error>,
    F: FnOnce(Tx<DB>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let tx = Tx { tx: Some(tx), home: Arc::default() };
    let home = tx.home();
    let body = body(tx);
    let (returned, calls) = match Deferral::begin() {
        Some(deferral) => (deferral.within(body).await?, deferral.take()),
        None => (body.await?, Vec::new()),
    };
    let tx = home.take().ok_or(Error::TakenOut)?;
    Ok((tx, returned, calls))
}

/// Stores the calls that a body has deferred.
pub(crate) async fn store<DB: OutboxDb>(
    connection: &mut DB::Connection,
    calls: &[Submission],
) -> Result<(), Error> {
    if calls.is_empty() {
        return Ok(());
    }
    insert::<DB>(connection, calls.iter()).await
}

pub(crate) async fn commit<DB: OutboxDb>(tx: Transaction<'static, DB>) -> Result<(), Error> {
    tx.commit().await?;
    wakeup::wake();
    Ok(())
}
