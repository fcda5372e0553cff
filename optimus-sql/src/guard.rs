//! Fences in the user's database: [`Guard`].

use optimus_core::{Context, Error as TaskError};
use sqlx::Transaction;

use crate::{
    Dialect, Error, OutboxDb,
    statement::{Kind, Statement},
};

/// The longest name of a guard, in bytes.
pub const GUARD_BYTES_MAX: usize = 512;

/// How long a transaction with a guard may stand still in PostgreSQL. Without a limit, a frozen
/// process would keep the row of the guard locked.
const STANDS_MAX: &str = "SET LOCAL idle_in_transaction_session_timeout = '60s'";

/// Guards of a handler's writes, for [`Context`].
pub trait Guard {
    /// Lets this transaction commit only if no attempt with a larger fence has passed the same
    /// guard. Use it if a handler writes in several transactions, or over a time in which its
    /// worker may lose the lease.
    ///
    /// The key names what is written, and belongs to **one task, or to the tasks of one lane**:
    /// their fences grow in the order in which they write. Tasks that run side by side must not
    /// share a key, because the one that was claimed first would be refused.
    ///
    /// ```
    /// # use optimus_core::Context;
    /// # use optimus_sql::{Error, Guard};
    /// # async fn pay(ctx: Context, pool: sqlx::SqlitePool, order: u64) -> Result<(), Error> {
    /// let mut tx = pool.begin().await?;
    /// ctx.guard(&mut tx, &format!("order-{order}")).await?;
    /// // … write
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The guard is held until the transaction ends, so two attempts never write at once. In
    /// PostgreSQL a transaction with a guard may stand still for 60 s; then the database ends it.
    ///
    /// # Errors
    /// [`Error::Stale`] if a later attempt has passed: roll back and stop. [`Error::Task`] for a
    /// key that is empty, too long or begins with `@`. [`Error::Database`].
    fn guard<DB: OutboxDb>(
        &self,
        tx: &mut Transaction<'_, DB>,
        key: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

impl Guard for Context {
    async fn guard<DB: OutboxDb>(
        &self,
        tx: &mut Transaction<'_, DB>,
        key: &str,
    ) -> Result<(), Error> {
        if key.is_empty() || key.len() > GUARD_BYTES_MAX || key.starts_with('@') {
            return Err(TaskError::invalid(format!(
                "the key of a guard takes 1 to {GUARD_BYTES_MAX} bytes and does not begin with @: \
                 {key:?}"
            ))
            .into());
        }
        if DB::DIALECT == Dialect::Postgres {
            DB::run_plain(tx, STANDS_MAX).await?;
        }
        let fence = i64::try_from(self.fence()).unwrap_or(i64::MAX);
        let seen = raise::<DB>(tx, key, fence).await?;
        if seen > fence {
            let [fence, seen] = [fence, seen].map(|fence| u64::try_from(fence).unwrap_or(0));
            return Err(Error::Stale { name: key.to_owned(), fence, seen });
        }
        Ok(())
    }
}

/// Raises a fence to this value, if it is lower, and keeps its row locked. Returns the value that
/// it had.
pub(crate) async fn raise<DB: OutboxDb>(
    connection: &mut DB::Connection,
    name: &str,
    fence: i64,
) -> Result<i64, Error> {
    let insert = DB::DIALECT.insert_or_lock("optimus_fence", "name,fence");
    DB::run(connection, Statement::new(insert).with(name).with(0)).await?;
    let select = Statement::new("SELECT fence FROM optimus_fence WHERE name = ?").with(name);
    let select = select.add(DB::DIALECT.for_update());
    let rows = DB::read(connection, select, &[Kind::Int]).await?;
    let seen = rows.first().map_or(0, |row| row[0].int());
    if seen < fence {
        let update = "UPDATE optimus_fence SET fence = ? WHERE name = ?";
        DB::run(connection, Statement::new(update).with(fence).with(name)).await?;
    }
    Ok(seen)
}
