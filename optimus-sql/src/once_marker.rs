//! What shows that a part of a task was applied: [`Marker`].

use optimus_core::{Context, Error as TaskError};
use sqlx::Pool;

use crate::{
    Dialect, Error, OutboxDb,
    sqlite_lock::look_in_sqlite,
    statement::{Kind, Statement, Value},
    transaction::check_mark,
};

/// Inserts a marker, unless another attempt holds the lock of it. Without the lock, the insert
/// would wait for the end of that attempt's transaction. Schemas of one database have locks of
/// their own by the table.
const INSERT_IN_POSTGRES: &str = "INSERT INTO optimus_once (queue, task, part, fence) \
     SELECT ?, ?, ?, ? WHERE pg_try_advisory_xact_lock(\
     hashtextextended(?, 'optimus_once'::regclass::oid::bigint)) ON CONFLICT DO NOTHING";

/// What shows that a part of a task was applied.
#[derive(Clone)]
pub(crate) struct Marker {
    queue: String,
    task: String,
    part: String,
    fence: u64,
    /// Whether there were attempts before this one. After a requeue, they are not known.
    is_later: bool,
}

/// What became of the insert of a marker.
pub(crate) enum Inserted {
    New,
    /// Another attempt has committed it, with this output; none if it was cut off.
    Known(Option<String>),
    /// Another attempt is in its transaction.
    Taken,
}

impl Marker {
    pub(crate) fn of(ctx: &Context, part: &str) -> Result<Self, Error> {
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
        let is_later = ctx.attempt() > 1;
        Ok(Self { queue, task, part: part.to_owned(), fence: ctx.fence(), is_later })
    }

    /// Returns the queue of the task.
    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    /// Fails if an earlier attempt is in its transaction, so that the insert of the marker would
    /// wait. A first attempt does not pay for this look, and waits in the rare cases, such as
    /// after a requeue.
    pub(crate) async fn look<DB: OutboxDb>(&self, pool: &Pool<DB>) -> Result<(), Error> {
        match DB::DIALECT {
            Dialect::MySql if self.is_later => {
                let select = "SELECT fence FROM optimus_once \
                              WHERE queue = ? AND task = ? AND part = ? FOR UPDATE NOWAIT";
                let select = self.with_key(Statement::new(select));
                // In a transaction, because a session may be without `autocommit`: the gap in which
                // others insert must not stay locked.
                let mut tx = pool.begin_with(DB::DIALECT.begin()).await?;
                let read = DB::read(&mut tx, select, &[Kind::Int]).await;
                let rolled_back = tx.rollback().await;
                read?;
                Ok(rolled_back?)
            }
            Dialect::Sqlite if self.is_later => look_in_sqlite(pool).await,
            // The insert of PostgreSQL does not wait.
            Dialect::Postgres | Dialect::MySql | Dialect::Sqlite => Ok(()),
        }
    }

    /// Inserts the marker. In MySQL this waits if another attempt is in its transaction.
    pub(crate) async fn insert<DB: OutboxDb>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Inserted, Error> {
        let fence = i64::try_from(self.fence).unwrap_or(i64::MAX);
        let insert = match DB::DIALECT {
            Dialect::Postgres => {
                let lock = format!("optimus_once {} {} {}", self.queue, self.task, self.part);
                self.with_key(Statement::new(INSERT_IN_POSTGRES)).with(fence).with(lock)
            }
            Dialect::MySql | Dialect::Sqlite => {
                let insert = DB::DIALECT.insert_new("optimus_once", "queue,task,part,fence");
                self.with_key(Statement::new(insert)).with(fence)
            }
        };
        if DB::run(connection, insert).await? == 0 {
            return self.find::<DB>(connection).await;
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

    /// Reads what another attempt has committed.
    async fn find<DB: OutboxDb>(&self, connection: &mut DB::Connection) -> Result<Inserted, Error> {
        let select = "SELECT output FROM optimus_once WHERE queue = ? AND task = ? AND part = ?";
        // A plain read of MySQL would show the database as of the beginning of the transaction.
        let select = self.with_key(Statement::new(select)).add(DB::DIALECT.for_share());
        let rows = DB::read(connection, select, &[Kind::Text]).await?;
        let Some(row) = rows.into_iter().next() else { return Ok(Inserted::Taken) };
        Ok(Inserted::Known(row.into_iter().next().and_then(Value::into_text)))
    }

    /// Stores the output, if the transaction is still open.
    pub(crate) async fn complete<DB: OutboxDb>(
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
pub(crate) fn floor_of(queue: &str) -> String {
    format!("@once.{queue}")
}

/// Creates the floor of a queue, unless it is there. In MySQL, to lock a row that is not there is
/// to lock the gap in which guards insert theirs. It comes before the marker, because attempts
/// that wait for a marker that is rolled back would wait for each other.
pub(crate) async fn ensure_floor<DB: OutboxDb>(pool: &Pool<DB>, queue: &str) -> Result<(), Error> {
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
