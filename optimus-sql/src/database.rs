//! The databases of sqlx that have an outbox: [`OutboxDb`]. All statements are built elsewhere;
//! this file only sends them.

use futures_util::future::BoxFuture;
use sqlx::Database;

use crate::{
    dialect::Dialect,
    statement::{Kind, Statement, Value},
};

/// The values of the columns of a row.
pub type Row = Vec<Value>;

/// A database of sqlx in which tasks can be submitted: `Postgres`, `MySql` or `Sqlite`. The
/// features of this crate enable them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no outbox",
    label = "the feature of `optimus-tasks-sql` for this database is off",
    note = "turn the feature `postgres`, `mysql` or `sqlite` of `optimus-tasks-sql` on; they are \
            for `sqlx::Postgres`, `sqlx::MySql` and `sqlx::Sqlite`"
)]
pub trait OutboxDb: Database + sealed::Sealed {
    /// The SQL of this database.
    const DIALECT: Dialect;

    /// Runs a statement; returns how many rows it has changed.
    #[doc(hidden)]
    fn run(
        connection: &mut Self::Connection,
        statement: Statement,
    ) -> BoxFuture<'_, Result<u64, sqlx::Error>>;

    /// Reads rows with columns of these types.
    #[doc(hidden)]
    fn read<'a>(
        connection: &'a mut Self::Connection,
        statement: Statement,
        kinds: &'static [Kind],
    ) -> BoxFuture<'a, Result<Vec<Row>, sqlx::Error>>;

    /// Runs statements that have no parameters, and can't all be prepared.
    #[doc(hidden)]
    fn run_plain<'a>(
        connection: &'a mut Self::Connection,
        sql: &'static str,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Runs statements with their values in the text, all in one packet; returns how many rows
    /// each has changed. Those after one that fails do not run.
    #[doc(hidden)]
    fn run_at_once(
        connection: &mut Self::Connection,
        sql: String,
    ) -> BoxFuture<'_, Result<Vec<u64>, sqlx::Error>>;
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! implement {
    ($database:ty, $dialect:expr) => {
        impl sealed::Sealed for $database {}

        impl OutboxDb for $database {
            const DIALECT: Dialect = $dialect;

            fn run(
                connection: &mut Self::Connection,
                statement: Statement,
            ) -> BoxFuture<'_, Result<u64, sqlx::Error>> {
                Box::pin(async move {
                    let (text, is_kept) = (statement.text($dialect), statement.is_kept);
                    let mut query = sqlx::query(sqlx::AssertSqlSafe(text)).persistent(is_kept);
                    for value in statement.values {
                        query = match value {
                            Value::Int(number) => query.bind(number),
                            Value::Text(text) => query.bind(text),
                            Value::Bytes(bytes) => query.bind(bytes),
                            Value::Null => query.bind(None::<String>),
                        };
                    }
                    Ok(query.execute(connection).await?.rows_affected())
                })
            }

            fn read<'a>(
                connection: &'a mut Self::Connection,
                statement: Statement,
                kinds: &'static [Kind],
            ) -> BoxFuture<'a, Result<Vec<Row>, sqlx::Error>> {
                Box::pin(async move {
                    use sqlx::Row as _;

                    let at_once = statement.once_in_mysql($dialect).map(sqlx::AssertSqlSafe);
                    let (text, is_kept) = (statement.text($dialect), statement.is_kept);
                    let mut query = sqlx::query(sqlx::AssertSqlSafe(text)).persistent(is_kept);
                    for value in statement.values {
                        query = match value {
                            Value::Int(number) => query.bind(number),
                            Value::Text(text) => query.bind(text),
                            Value::Bytes(bytes) => query.bind(bytes),
                            Value::Null => query.bind(None::<String>),
                        };
                    }
                    let read = match at_once {
                        Some(text) => sqlx::raw_sql(text).fetch_all(connection).await?,
                        None => query.fetch_all(connection).await?,
                    };
                    let mut rows = Vec::new();
                    for row in read {
                        let mut values = Vec::with_capacity(kinds.len());
                        for (at, kind) in kinds.iter().enumerate() {
                            values.push(match kind {
                                Kind::Int => row.try_get::<Option<i64>, _>(at)?.map(Value::Int),
                                Kind::Text => {
                                    row.try_get::<Option<String>, _>(at)?.map(Value::Text)
                                }
                                Kind::Bytes => {
                                    row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes)
                                }
                            });
                        }
                        rows.push(values.into_iter().map(|v| v.unwrap_or(Value::Null)).collect());
                    }
                    Ok(rows)
                })
            }

            fn run_plain<'a>(
                connection: &'a mut Self::Connection,
                sql: &'static str,
            ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
                Box::pin(async move { sqlx::raw_sql(sql).execute(connection).await.map(drop) })
            }

            fn run_at_once(
                connection: &mut Self::Connection,
                sql: String,
            ) -> BoxFuture<'_, Result<Vec<u64>, sqlx::Error>> {
                use futures_util::TryStreamExt as _;

                let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute_many(connection);
                Box::pin(done.map_ok(|done| done.rows_affected()).try_collect())
            }
        }
    };
}

#[cfg(feature = "mysql")]
implement!(sqlx::MySql, Dialect::MySql);
#[cfg(feature = "postgres")]
implement!(sqlx::Postgres, Dialect::Postgres);
#[cfg(feature = "sqlite")]
implement!(sqlx::Sqlite, Dialect::Sqlite);
