//! Transactions that may not stand still for long: [`begin`], [`lift`]. A process that is frozen in
//! one of them would keep its locks.

use sqlx::{Pool, Transaction};

use crate::{Error, OutboxDb, Tx, whole::whole};

/// Begins a transaction with a mark, which the database ends if it stands still for 60 s. The
/// future must not be dropped while it runs: see [`whole`].
pub(crate) async fn begin<DB: OutboxDb>(
    pool: &Pool<DB>,
) -> Result<Transaction<'static, DB>, Error> {
    Ok(pool.begin_with(DB::DIALECT.begin_limited()).await?)
}

/// Gives the session its own limit back, before the end of the transaction. If a future is dropped
/// before, the session keeps the limit until the next transaction of this kind.
pub(crate) async fn lift<DB: OutboxDb>(connection: &mut DB::Connection) -> Result<(), Error> {
    if let Some(sql) = DB::DIALECT.lift_limit() {
        DB::run_plain(connection, sql).await?;
    }
    Ok(())
}

/// Returns the transaction, or rolls it back if something in it has failed.
pub(crate) async fn keep<DB: OutboxDb, T>(
    tx: Transaction<'static, DB>,
    done: Result<T, Error>,
) -> Result<(Transaction<'static, DB>, T), Error> {
    match done {
        Ok(done) => Ok((tx, done)),
        Err(problem) => {
            // The connection may be broken, which the error says.
            roll_back(tx).await.ok();
            Err(problem)
        }
    }
}

/// Rolls a transaction back.
pub(crate) async fn roll_back<DB: OutboxDb>(mut tx: Transaction<'static, DB>) -> Result<(), Error> {
    lift::<DB>(&mut tx).await?;
    Ok(tx.rollback().await?)
}

/// Runs a body, and rolls back if it fails.
pub(crate) async fn roll_back_after<DB, T, E, F, Fut>(tx: Tx<DB>, body: F) -> Result<T, E>
where
    DB: OutboxDb,
    F: FnOnce(Tx<DB>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let home = tx.home();
    let returned = body(tx).await;
    if returned.is_err()
        && let Some(tx) = home.take()
    {
        // The connection may be broken, which the error of the body says.
        whole(roll_back(tx)).await.ok();
    }
    returned
}
