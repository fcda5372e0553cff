//! The connection of a relay: [`Link`].

use std::{io, time::Duration};

use sqlx::{ConnectOptions as _, Pool, Transaction};
use tokio::time::timeout;

use crate::{
    Dialect, Error, OutboxDb,
    database::Row,
    patience::within,
    sqlite_lock::begin_in_sqlite,
    statement::{Kind, Statement, Value},
};

/// How long a relay tries to find out why its pool has no connection.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// How a relay reaches its database.
pub(crate) enum Link<DB: OutboxDb> {
    /// A connection of its own, so it never waits for one of the pool. Each statement is limited to
    /// this time.
    Own(DB::Connection, Duration),
    /// The database is in the memory of a connection of the pool. Without that connection, the
    /// pool would open another, empty database. So the relay takes it for one statement or one
    /// transaction, and not while it waits for Redis.
    Lent { pool: Pool<DB>, tx: Option<Transaction<'static, DB>> },
}

impl<DB: OutboxDb> Link<DB> {
    pub(crate) async fn open(pool: &Pool<DB>, limit: Duration) -> Result<Self, Error> {
        let mut connection = pool.acquire().await?;
        if is_in_memory::<DB>(&mut connection).await? {
            return Ok(Self::Lent { pool: pool.clone(), tx: None });
        }
        Ok(Self::Own(connection.detach(), limit))
    }

    pub(crate) async fn run(&mut self, statement: Statement) -> Result<u64, Error> {
        Ok(match self {
            Self::Own(connection, limit) => {
                within::<DB, _>(*limit, DB::run(connection, statement)).await?
            }
            Self::Lent { tx: Some(tx), .. } => DB::run(tx, statement).await?,
            Self::Lent { pool, tx: None } => {
                DB::run(&mut *pool.acquire().await?, statement).await?
            }
        })
    }

    pub(crate) async fn read(
        &mut self,
        what: Statement,
        kinds: &'static [Kind],
    ) -> Result<Vec<Row>, Error> {
        Ok(match self {
            Self::Own(connection, limit) => {
                within::<DB, _>(*limit, DB::read(connection, what, kinds)).await?
            }
            Self::Lent { tx: Some(tx), .. } => DB::read(tx, what, kinds).await?,
            Self::Lent { pool, tx: None } => {
                DB::read(&mut *pool.acquire().await?, what, kinds).await?
            }
        })
    }

    /// Runs statements in one packet: see [`OutboxDb::run_at_once`].
    pub(crate) async fn run_at_once(&mut self, sql: String) -> Result<Vec<u64>, Error> {
        Ok(match self {
            Self::Own(connection, limit) => {
                within::<DB, _>(*limit, DB::run_at_once(connection, sql)).await?
            }
            Self::Lent { pool, .. } => DB::run_at_once(&mut *pool.acquire().await?, sql).await?,
        })
    }

    /// Sets up the session, if it is its own.
    pub(crate) async fn set_up(&mut self, sql: &'static str) -> Result<(), Error> {
        match self {
            Self::Own(connection, limit) if !sql.is_empty() => {
                Ok(within::<DB, _>(*limit, DB::run_plain(connection, sql)).await?)
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        // MySQL has no limit for a transaction alone, so the session has it meanwhile. Between its
        // turns, a relay may wait for Redis.
        let begin = match DB::DIALECT {
            Dialect::MySql => "SET wait_timeout = 5; BEGIN",
            dialect => dialect.begin(),
        };
        match self {
            Self::Own(connection, _) if DB::DIALECT == Dialect::Sqlite => {
                begin_in_sqlite::<DB>(connection).await?;
            }
            Self::Own(connection, limit) => {
                within::<DB, _>(*limit, DB::run_plain(connection, begin)).await?;
            }
            // If it is dropped, it is rolled back before anybody else has the connection.
            Self::Lent { pool, tx } => *tx = Some(pool.begin_with(begin).await?),
        }
        Ok(())
    }

    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        match self {
            Self::Own(connection, limit) => {
                end::<DB>(connection, *limit, "COMMIT; SET wait_timeout = 60", "COMMIT").await
            }
            Self::Lent { tx, .. } => match tx.take() {
                Some(tx) => Ok(tx.commit().await?),
                None => Ok(()),
            },
        }
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), Error> {
        match self {
            Self::Own(connection, limit) => {
                end::<DB>(connection, *limit, "ROLLBACK; SET wait_timeout = 60", "ROLLBACK").await
            }
            Self::Lent { tx, .. } => match tx.take() {
                Some(tx) => Ok(tx.rollback().await?),
                None => Ok(()),
            },
        }
    }
}

/// Returns why a pool has no connection. It says only how long it has waited, because it tries
/// again and again to connect.
pub(crate) async fn cause<DB: OutboxDb>(pool: &Pool<DB>, problem: Error) -> Error {
    if !matches!(problem, Error::Database(sqlx::Error::PoolTimedOut)) {
        return problem;
    }
    let is_full = pool.size() >= pool.options().get_max_connections() && pool.num_idle() == 0;
    let text = match timeout(LOOK_WITHIN, pool.connect_options().connect()).await {
        Ok(Err(cause)) => return cause.into(),
        Ok(Ok(_)) if is_full => return problem,
        Ok(Ok(_)) => {
            "the database accepts a connection, but the pool opens none: look at its hooks, such \
             as after_connect"
        }
        Err(_) => "the database does not answer: look at its host and at the network",
    };
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text)).into()
}

async fn end<DB: OutboxDb>(
    connection: &mut DB::Connection,
    limit: Duration,
    in_mysql: &'static str,
    elsewhere: &'static str,
) -> Result<(), Error> {
    let sql = if DB::DIALECT == Dialect::MySql { in_mysql } else { elsewhere };
    Ok(within::<DB, _>(limit, DB::run_plain(connection, sql)).await?)
}

/// Returns whether the database is lost with its connection: in memory, or in a file without a
/// name.
async fn is_in_memory<DB: OutboxDb>(connection: &mut DB::Connection) -> Result<bool, Error> {
    if DB::DIALECT != Dialect::Sqlite {
        return Ok(false);
    }
    let select = "SELECT file FROM pragma_database_list WHERE name = 'main'";
    let rows = DB::read(connection, Statement::new(select), &[Kind::Text]).await?;
    let file = rows.into_iter().flatten().next().and_then(Value::into_text);
    Ok(file.unwrap_or_default().is_empty())
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod tests {
    use sqlx::{Sqlite, pool::PoolOptions};

    use super::*;

    #[tokio::test]
    async fn a_link_that_is_dropped_within_its_transaction_gives_the_connection_back() {
        let options = PoolOptions::<Sqlite>::new().max_connections(1);
        let pool = options.connect("sqlite::memory:").await.unwrap();
        let mut link = Link::open(&pool, LOOK_WITHIN).await.unwrap();
        link.run(Statement::new("CREATE TABLE t (n bigint)")).await.unwrap();
        link.begin().await.unwrap();
        link.run(Statement::new("INSERT INTO t VALUES (1)")).await.unwrap();
        drop(link);
        let mut link = Link::open(&pool, LOOK_WITHIN).await.unwrap();
        link.run(Statement::new("INSERT INTO t VALUES (2)")).await.unwrap();
        let rows = link.read(Statement::new("SELECT n FROM t"), &[Kind::Int]).await.unwrap();
        assert_eq!(rows.iter().map(|row| row[0].int()).collect::<Vec<_>>(), [2]);
    }
}
