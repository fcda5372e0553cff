//! Effects of a handler in a database, exactly once: [`Once`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use optimus_core::{Context, Error as TaskError, Submission};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Pool, Transaction};

use crate::{
    Dialect, Error, OutboxDb, Tx,
    json_output::to_json,
    limit,
    once_parts::Claim,
    statement::{Kind, Statement, Value},
    transaction::{check_mark, commit, run, store},
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
    /// Another attempt waits while this one is in its body. If the process of this one is frozen,
    /// PostgreSQL and MySQL end the transaction once it has stood still for 60 s, so no body may
    /// let its connection rest for longer. SQLite has no such limit.
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
    /// this attempt has run `once` already; [`Error::Output`] for an output that JSON can't keep;
    /// [`Error::NoOutput`] if an earlier attempt was cut off by a statement that commits;
    /// [`Error::Task`] in a run of several gathered calls, because another run may have other
    /// calls.
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
    let tx = match whole(begin_with(marker.clone(), pool.clone())).await? {
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

/// Begins a transaction, and inserts the marker.
async fn begin_with<DB: OutboxDb>(marker: Marker, pool: Pool<DB>) -> Result<Begun<DB>, Error> {
    if DB::DIALECT == Dialect::MySql {
        ensure_floor(&pool, &marker.queue).await?;
    }
    let mut tx = limit::begin(&pool).await?;
    let inserted = marker.insert::<DB>(&mut tx).await;
    let (mut tx, inserted) = limit::keep(tx, inserted).await?;
    if inserted == Inserted::New {
        return Ok(Begun::New(tx));
    }
    let stored = marker.output::<DB>(&mut tx).await;
    let (tx, stored) = limit::keep(tx, stored).await?;
    limit::roll_back(tx).await?;
    Ok(Begun::Known(stored))
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

/// What became of the insert of a marker.
#[derive(PartialEq, Eq)]
enum Inserted {
    New,
    /// Another attempt has committed it.
    Known,
}

/// What shows that a part of a task was applied.
#[derive(Clone)]
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

    /// Inserts the marker. If another attempt is about to commit it, this waits.
    async fn insert<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Inserted, Error> {
        let fence = i64::try_from(self.fence).unwrap_or(i64::MAX);
        let insert = DB::DIALECT.insert_new("optimus_once", "queue,task,part,fence");
        let insert = self.with_key(Statement::new(insert)).with(fence);
        if DB::run(connection, insert).await? == 0 {
            return Ok(Inserted::Known);
        }
        // After the insert: a purge that is under way has either raised the floor before this read,
        // or waits for this transaction.
        let select = "SELECT fence FROM optimus_fence WHERE name = ?";
        let select = Statement::new(select).with(floor_of(&self.queue));
        let rows = DB::read(connection, select.add(DB::DIALECT.for_share()), &[Kind::Int]).await?;
        let seen = rows.first().map_or(0, |row| u64::try_from(row[0].int()).unwrap_or(0));
        if self.fence <= seen {
            let (name, fence) = (self.queue.clone(), self.fence);
            return Err(Error::Stale { name, fence, seen });
        }
        Ok(Inserted::New)
    }

    /// Reads the output that an attempt has stored; none if it was cut off.
    async fn output<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<String>, Error> {
        let select = "SELECT output FROM optimus_once WHERE queue = ? AND task = ? AND part = ?";
        // A plain read of MySQL would show the database as of the beginning of the transaction.
        let select = self.with_key(Statement::new(select)).add(DB::DIALECT.for_share());
        let rows = DB::read(connection, select, &[Kind::Text]).await?;
        let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.into_iter().next().and_then(Value::into_text))
    }

    /// Stores the output, if the transaction is still open.
    async fn complete<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
        output: String,
    ) -> Result<(), Error> {
        check_mark::<DB>(connection).await?;
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

/// Creates the floor of a queue, unless it is there. In MySQL, to lock a row that is not there is
/// to lock the gap in which guards insert theirs. It comes before the marker, because attempts
/// that wait for a marker that is rolled back would wait for each other.
async fn ensure_floor<DB: OutboxDb>(pool: &Pool<DB>, queue: &str) -> Result<(), Error> {
    let select = Statement::new("SELECT fence FROM optimus_fence WHERE name = ?");
    let select = select.with(floor_of(queue));
    let found = DB::read(&mut *pool.acquire().await?, select, &[Kind::Int]).await?;
    if found.is_empty() {
        create_floor(pool, queue).await?;
    }
    Ok(())
}

/// Creates the floor of a queue, in a transaction of its own, so that nothing stays locked.
async fn create_floor<DB: OutboxDb>(pool: &Pool<DB>, queue: &str) -> Result<(), Error> {
    let insert = DB::DIALECT.insert_new("optimus_fence", "name,fence");
    let insert = Statement::new(insert).with(floor_of(queue)).with(0);
    DB::run(&mut *pool.acquire().await?, insert).await?;
    Ok(())
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
