//! Effects of a handler in a database, exactly once: [`Once`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use optimus_core::{Context, Submission};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Pool, Transaction};

use crate::{
    Dialect, Error, OutboxDb, Tx,
    json_output::to_json,
    limit,
    once_marker::{Inserted, Marker, ensure_floor, floor_of},
    once_parts::Claim,
    once_wait::{Looks, is_taken},
    statement::{Kind, Statement, Value},
    transaction::{commit, run, store},
    unsent::look_after_commit,
    whole::whole,
};

/// What a handler does in a database, for [`Context`].
pub trait Once {
    /// Runs a transaction exactly once for this task, whatever happens to its attempts: the body,
    /// its calls of [`perform_in_tx`](crate::PerformInTx::perform_in_tx) and `.perform_async()`,
    /// and its output are committed together with a marker. A later attempt finds the marker, runs
    /// nothing, and returns the stored output.
    ///
    /// If the body returns an error, nothing is applied, and the next attempt runs it again.
    /// Effects outside of the database are not part of this. A handler with several such
    /// transactions in one database names them: [`once_part`](Self::once_part).
    ///
    /// A later attempt does not begin while an earlier one is in its body. It looks again for some
    /// seconds, for at most half of its time, and keeps no connection between its looks. Then it
    /// returns [`Error::Waits`], with which the task snoozes for 5 s: that uses no retry.
    ///
    /// If the process of the earlier attempt is frozen, PostgreSQL and MySQL end its transaction
    /// once it has stood still for 60 s, so no body may let its connection rest for longer. SQLite
    /// has no such limit.
    ///
    /// ```no_run
    /// # use optimus_core::{BoxError, Context};
    /// # async fn pay(ctx: Context, pool: sqlx::SqlitePool) -> Result<(), BoxError> {
    /// use optimus_sql::Once as _;
    ///
    /// let receipt: i64 = ctx
    ///     .once(&pool, async |mut tx| {
    ///         sqlx::query("UPDATE accounts SET balance = balance - 5").execute(&mut **tx).await?;
    ///         Ok::<_, BoxError>(7)
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of the body. Converted: [`Error::Database`]; [`Error::Ended`] if the database has
    /// ended the transaction before its commit, because the body has passed over an error;
    /// [`Error::Stale`] if a marker of this attempt may have been purged; [`Error::SamePart`] if
    /// this attempt has run `once` already; [`Error::Waits`] if an earlier attempt is still in its
    /// body: return it, and the task runs again soon; [`Error::Output`] for an output that JSON
    /// can't keep; [`Error::NoOutput`] if an earlier attempt was cut off by a statement that
    /// commits; [`Error::Task`] in a run of several gathered calls, because another run may have
    /// other calls.
    fn once<'a, DB, T, E, F, Fut>(
        &'a self,
        pool: &'a Pool<DB>,
        body: F,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        DB: OutboxDb,
        T: Serialize + DeserializeOwned + Send + 'a,
        E: From<Error> + Send + 'a,
        F: FnOnce(Tx<DB>) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
    {
        self.once_part("", pool, body)
    }

    /// Does as [`once`](Self::once), for one of several transactions of a handler. Each has a name
    /// of up to 128 letters, digits and `._-`.
    ///
    /// # Errors
    /// The errors of [`once`](Self::once).
    fn once_part<'a, DB, T, E, F, Fut>(
        &'a self,
        part: &'a str,
        pool: &'a Pool<DB>,
        body: F,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        DB: OutboxDb,
        T: Serialize + DeserializeOwned + Send + 'a,
        E: From<Error> + Send + 'a,
        F: FnOnce(Tx<DB>) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a;
}

impl Once for Context {
    fn once_part<'a, DB, T, E, F, Fut>(
        &'a self,
        part: &'a str,
        pool: &'a Pool<DB>,
        body: F,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        DB: OutboxDb,
        T: Serialize + DeserializeOwned + Send + 'a,
        E: From<Error> + Send + 'a,
        F: FnOnce(Tx<DB>) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
    {
        Box::pin(apply_once(self, part, pool, body))
    }
}

async fn apply_once<DB, T, E, F, Fut>(
    ctx: &Context,
    part: &str,
    pool: &Pool<DB>,
    body: F,
) -> Result<T, E>
where
    DB: OutboxDb,
    T: Serialize + DeserializeOwned,
    E: From<Error>,
    F: FnOnce(Tx<DB>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let marker = Marker::of(ctx, part)?;
    let claim = Claim::of(ctx, part, pool)?;
    let tx = match begin_in_turn(ctx, &marker, pool).await? {
        Begun::New(tx) => tx,
        Begun::Known(stored) => {
            let stored = stored.ok_or(Error::NoOutput)?;
            let output = serde_json::from_str(&stored).map_err(Error::from)?;
            claim.keep();
            return Ok(output);
        }
    };
    let (tx, returned, calls) = run(tx, |tx| limit::roll_back_after(tx, body)).await?;
    // Nothing borrows the output while this waits: it need not be `Sync`.
    let output = to_json(&returned).map_err(Error::from);
    whole(end(marker, tx, calls, output)).await?;
    look_after_commit(pool);
    claim.keep();
    Ok(returned)
}

/// How a transaction of `once` has begun.
enum Begun<DB: OutboxDb> {
    New(Transaction<'static, DB>),
    /// Another attempt has committed the marker, with this output.
    Known(Option<String>),
}

/// Begins a transaction with a marker, once no earlier attempt is in its own one.
async fn begin_in_turn<DB: OutboxDb>(
    ctx: &Context,
    marker: &Marker,
    pool: &Pool<DB>,
) -> Result<Begun<DB>, Error> {
    let mut looks = Looks::of(ctx);
    loop {
        match whole(begin_with(marker.clone(), pool.clone())).await {
            Ok(Some(begun)) => return Ok(begun),
            Ok(None) => {}
            Err(Error::Database(problem)) if is_taken(DB::DIALECT, &problem) => {}
            Err(problem) => return Err(problem),
        }
        looks.wait(DB::DIALECT).await?;
    }
}

/// Begins a transaction, and inserts the marker; returns nothing if another attempt is about to
/// commit it.
async fn begin_with<DB: OutboxDb>(
    marker: Marker,
    pool: Pool<DB>,
) -> Result<Option<Begun<DB>>, Error> {
    marker.look(&pool).await?;
    if DB::DIALECT == Dialect::MySql {
        ensure_floor(&pool, marker.queue()).await?;
    }
    let mut tx = limit::begin(&pool).await?;
    let inserted = marker.insert::<DB>(&mut tx).await;
    let (tx, inserted) = limit::keep(tx, inserted).await?;
    let begun = match inserted {
        Inserted::New => return Ok(Some(Begun::New(tx))),
        Inserted::Known(stored) => Some(Begun::Known(stored)),
        Inserted::Taken => None,
    };
    limit::roll_back(tx).await?;
    Ok(begun)
}

/// Stores what a body leaves, and commits.
async fn end<DB: OutboxDb>(
    marker: Marker,
    mut tx: Transaction<'static, DB>,
    calls: Vec<Submission>,
    output: Result<String, Error>,
) -> Result<(), Error> {
    let completed = async {
        store::<DB>(&mut tx, &calls).await?;
        marker.complete::<DB>(&mut tx, output?).await
    };
    let completed = completed.await;
    let (mut tx, ()) = limit::keep(tx, completed).await?;
    limit::lift::<DB>(&mut tx).await?;
    commit(tx).await
}

/// The most markers that one transaction of a purge deletes.
const PURGED_MAX: u32 = 1_000;

/// Deletes the markers of [`once`](Once::once) that are older than `age`, and returns how many they
/// were. Call it once a day. Attempts that began before the newest of these were applied are
/// refused from then on, so no process that was frozen for that long applies anything again.
///
/// `age` must be longer than a task may wait for its next attempt, such as 30 days: a task that
/// was applied, and whose success was never reported, would be applied again after that time.
///
/// # Errors
/// [`Error::Database`].
pub async fn purge_once<DB: OutboxDb>(pool: &Pool<DB>, age: Duration) -> Result<u64, Error> {
    let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let mut purged = 0;
    loop {
        let count = whole(purge_some(pool.clone(), age_ms)).await?;
        purged += count;
        if count < u64::from(PURGED_MAX) {
            return Ok(purged);
        }
    }
}

/// Raises the floors first and deletes afterwards, in one transaction.
async fn purge_some<DB: OutboxDb>(pool: Pool<DB>, age_ms: i64) -> Result<u64, Error> {
    const KINDS: &[Kind] = &[Kind::Text, Kind::Text, Kind::Text, Kind::Int];
    let now = DB::DIALECT.now_ms();
    let mut tx = limit::begin(&pool).await?;
    let select = Statement::new(format!(
        "SELECT queue, task, part, fence FROM optimus_once WHERE at_ms < {now} - ? \
         ORDER BY at_ms LIMIT {PURGED_MAX}"
    ));
    let rows = DB::read(&mut tx, select.with(age_ms), KINDS).await?;
    let mut floors = std::collections::BTreeMap::<String, i64>::new();
    for row in &rows {
        let Value::Text(queue) = &row[0] else { continue };
        let floor = floors.entry(queue.clone()).or_default();
        *floor = row[3].int().max(*floor);
    }
    for (queue, fence) in floors {
        crate::guard::raise::<DB>(&mut tx, &floor_of(&queue), fence).await?;
    }
    let mut deleted = 0;
    for row in rows {
        let delete = "DELETE FROM optimus_once WHERE queue = ? AND task = ? AND part = ?";
        let delete = row.into_iter().take(3).fold(Statement::new(delete), Statement::with);
        deleted += DB::run(&mut tx, delete).await?;
    }
    limit::lift::<DB>(&mut tx).await?;
    commit(tx).await?;
    Ok(deleted)
}
