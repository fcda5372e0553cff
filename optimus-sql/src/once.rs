//! Effects of a handler in a database, exactly once: [`Once`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use optimus_core::{Context, Error as TaskError};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::Pool;

use crate::{
    Error, OutboxDb, Tx,
    statement::{Kind, Statement, Value},
    transaction::{begin, begin_marked, check_mark, commit, run},
};

/// What a handler does in a database, for [`Context`].
pub trait Once {
    /// Runs a transaction exactly once for this task, whatever happens to its attempts: the body,
    /// its calls of [`perform_in_tx`](crate::PerformInTx::perform_in_tx) and `.perform_async()`,
    /// and its output are committed together with a marker. A later attempt finds the marker, runs
    /// nothing, and returns the stored output.
    ///
    /// If the body returns an error, nothing is applied, and the next attempt runs it again.
    /// Effects outside of the database are not part of this.
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
    /// The error of the body. Converted: [`Error::Database`]; [`Error::Stale`] if a marker of this
    /// attempt may have been purged; [`Error::Task`] in a run of several gathered calls, because
    /// another run may have other calls.
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
    let mut tx = begin_marked(pool).await?;
    if !marker.insert::<DB>(&mut tx).await? {
        let stored = marker.output::<DB>(&mut tx).await?;
        tx.rollback().await.map_err(Error::from)?;
        return Ok(serde_json::from_str(&stored).map_err(Error::from)?);
    }
    let (mut tx, returned) = run(tx, body).await?;
    let output = serde_json::to_string(&returned).map_err(Error::from)?;
    check_mark::<DB>(&mut tx).await?;
    marker.complete::<DB>(&mut tx, output).await?;
    commit(tx).await?;
    Ok(returned)
}

/// What shows that a part of a task was applied.
struct Marker {
    queue: String,
    task: String,
    part: String,
    fence: u64,
}

impl Marker {
    fn of(ctx: &Context, part: &str) -> Result<Self, Error> {
        if ctx.calls().len() > 1 {
            let what = "`once` is for a task that runs alone: another run of gathered calls may \
                        have other calls, so use a guard, or a unique key for each call";
            return Err(TaskError::invalid(what).into());
        }
        if !part.is_empty() {
            optimus_core::validate_name(part)
                .map_err(|problem| TaskError::invalid(format!("a part of `once`: {problem}")))?;
        }
        let (queue, task) = (ctx.queue().to_string(), ctx.id().uuid().to_string());
        Ok(Self { queue, task, part: part.to_owned(), fence: ctx.fence() })
    }

    /// Inserts the marker; returns whether it is new. If another attempt is about to commit it,
    /// this waits.
    async fn insert<DB: OutboxDb>(&self, connection: &mut DB::Connection) -> Result<bool, Error> {
        let fence = i64::try_from(self.fence).unwrap_or(i64::MAX);
        let insert = DB::DIALECT.insert_new("optimus_once", "queue,task,part,fence");
        let insert = self.with_key(Statement::new(insert)).with(fence);
        if DB::run(connection, insert).await? == 0 {
            return Ok(false);
        }
        // After the insert: a purge that is under way has either raised the floor before this read,
        // or waits for this transaction.
        let select = "SELECT fence FROM optimus_fence WHERE name = ?";
        let floor = floor_of(&self.queue);
        let select = Statement::new(select).with(floor).add(DB::DIALECT.for_share());
        let rows = DB::read(connection, select, &[Kind::Int]).await?;
        let seen = rows.first().map_or(0, |row| u64::try_from(row[0].int()).unwrap_or(0));
        if self.fence <= seen {
            let (name, fence) = (self.queue.clone(), self.fence);
            return Err(Error::Stale { name, fence, seen });
        }
        Ok(true)
    }

    async fn output<DB: OutboxDb>(&self, connection: &mut DB::Connection) -> Result<String, Error> {
        let select = "SELECT output FROM optimus_once WHERE queue = ? AND task = ? AND part = ?";
        // A plain read of MySQL would show the database as of the beginning of the transaction.
        let select = self.with_key(Statement::new(select)).add(DB::DIALECT.for_share());
        let rows = DB::read(connection, select, &[Kind::Text]).await?;
        let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.into_iter().next().and_then(Value::into_text).unwrap_or_default())
    }

    async fn complete<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        output: String,
    ) -> Result<(), Error> {
        let update = "UPDATE optimus_once SET output = ? WHERE queue = ? AND task = ? AND part = ?";
        let update = self.with_key(Statement::new(update).with(output));
        // Without a marker, a later attempt would apply everything again.
        if DB::run(connection, update).await? == 1 { Ok(()) } else { Err(Error::Ended) }
    }

    fn with_key(&self, statement: Statement) -> Statement {
        statement.with(&*self.queue).with(&*self.task).with(&*self.part)
    }
}

/// The name of the fence below which the markers of a queue may be purged.
fn floor_of(queue: &str) -> String {
    format!("@once.{queue}")
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
        let count = purge_some(pool, age_ms).await?;
        purged += count;
        if count < u64::from(PURGED_MAX) {
            return Ok(purged);
        }
    }
}

/// Raises the floors first and deletes afterwards, in one transaction.
async fn purge_some<DB: OutboxDb>(pool: &Pool<DB>, age_ms: i64) -> Result<u64, Error> {
    const KINDS: &[Kind] = &[Kind::Text, Kind::Text, Kind::Text, Kind::Int];
    let now = DB::DIALECT.now_ms();
    let mut tx = begin(pool).await?;
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
    commit(tx).await?;
    Ok(deleted)
}
