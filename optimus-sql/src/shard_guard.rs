//! Fences and positions of shards in the user's transactions: [`ShardGuard`].

use optimus_core::{Error as TaskError, Shard};
use serde::Serialize;
use sqlx::Transaction;

use crate::{Dialect, Error, OutboxDb, shard_fence::Fences};

/// How long a transaction with a guard may stand still in PostgreSQL. Without a limit, a frozen
/// process would keep the next holder of its shard waiting.
const STANDS_MAX: &str = "SET LOCAL idle_in_transaction_session_timeout = '30s'";

/// Guards of the writes of a sharded function, for [`Shard`].
pub trait ShardGuard {
    /// Lets this transaction commit only if no later holder has passed the guard of this shard, and
    /// no shard of a later count the one of the function. Call it first in the transaction: what
    /// you read before may be older than what the holder before has committed.
    ///
    /// The guard is held until the transaction ends, so the next holder waits for it, and the first
    /// holder after a change of the count waits for all shards of the old count. Shards of one
    /// count do not wait for each other, except in MySQL for the first transaction of a holder.
    ///
    /// From then on, [`Shard::position`] is the one that [`checkpoint_in`](Self::checkpoint_in) has
    /// stored in this database, if it has one.
    ///
    /// # Errors
    /// [`Error::Stale`] if a later holder has passed: roll back and end the round. [`Error::Task`]
    /// in a transaction of PostgreSQL that is not `READ COMMITTED`, because it would not see what
    /// the holder before has committed meanwhile. [`Error::Database`].
    fn guard<DB: OutboxDb>(
        &self,
        tx: &mut Transaction<'_, DB>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores in this transaction how far the shard has come, after [`guard`](Self::guard). So the
    /// position and the work up to it are committed together, and no row is seen twice by the
    /// shards of one count. The next guard reads it.
    ///
    /// It checks all that the guard checks, and keeps later holders out as the guard does. So the
    /// work of a transaction whose guard was forgotten, or was in a savepoint that is rolled back,
    /// is not committed beside that of a later holder either.
    ///
    /// # Errors
    /// [`Error::Stale`] if a later holder has passed, or a shard of a later count: roll back and
    /// end the round. [`Error::Task`] if this holder has passed no guard, neither in this
    /// transaction nor in one that is committed. [`Error::Task`] for a value that is no JSON or
    /// above 64 KiB. [`Error::Database`].
    fn checkpoint_in<DB: OutboxDb, T: Serialize + Sync>(
        &self,
        tx: &mut Transaction<'_, DB>,
        position: &T,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

impl ShardGuard for Shard {
    async fn guard<DB: OutboxDb>(&self, tx: &mut Transaction<'_, DB>) -> Result<(), Error> {
        if DB::DIALECT == Dialect::Postgres {
            DB::run_plain(tx, STANDS_MAX).await?;
        }
        let mut fences = Fences::of(self);
        let base = fences.pass_generation::<DB>(tx, self).await?;
        let own = fences.pass_fence::<DB>(tx).await?;
        self.note_guarded(own.map_or(base, |own| vec![own]));
        Ok(())
    }

    async fn checkpoint_in<DB: OutboxDb, T: Serialize + Sync>(
        &self,
        tx: &mut Transaction<'_, DB>,
        position: &T,
    ) -> Result<(), Error> {
        let text = Self::position_text(position)?;
        if Fences::of(self).store::<DB>(tx, text).await? {
            return Ok(());
        }
        let text = "checkpoint_in stores the position under the guard of its transaction; call \
                    shard.guard(&mut tx) first";
        Err(TaskError::invalid(text).into())
    }
}
