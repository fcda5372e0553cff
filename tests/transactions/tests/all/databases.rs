//! The databases of the tests: [`TestDb`]. Each test has a database of its own.

use std::sync::OnceLock;

use optimus_sql::OutboxDb;
use optimus_testkit::{MariaDbServer, PostgresServer};
use sqlx::{AssertSqlSafe, ConnectOptions as _, MySql, Pool, Postgres, Sqlite, pool::PoolOptions};
use tempfile::TempDir;

/// A database that a test can have for itself.
pub trait TestDb: OutboxDb {
    /// Creates a database; returns its URL, and the folder that it needs.
    fn create(name: &str) -> impl Future<Output = (String, Option<TempDir>)> + Send;

    /// Connects to a database.
    fn connect(url: &str) -> impl Future<Output = Pool<Self>> + Send;

    /// Reads a number.
    fn number(pool: &Pool<Self>, sql: &'static str) -> impl Future<Output = i64> + Send;

    /// Reads a text.
    fn text(pool: &Pool<Self>, sql: &'static str) -> impl Future<Output = String> + Send;

    /// Reads numbers within a transaction.
    fn numbers(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Result<Vec<i64>, sqlx::Error>> + Send;

    /// Runs a statement within a transaction.
    fn run_text(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// What is the same code for each database, and no common trait of sqlx allows.
macro_rules! reads {
    () => {
        async fn number(pool: &Pool<Self>, sql: &'static str) -> i64 {
            sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
        }

        async fn text(pool: &Pool<Self>, sql: &'static str) -> String {
            sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
        }

        async fn numbers(
            connection: &mut Self::Connection,
            sql: String,
        ) -> Result<Vec<i64>, sqlx::Error> {
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await
        }

        async fn run_text(
            connection: &mut Self::Connection,
            sql: String,
        ) -> Result<(), sqlx::Error> {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
        }
    };
}

fn postgres() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(PostgresServer::start)
}

fn mariadb() -> &'static MariaDbServer {
    static SERVER: OnceLock<MariaDbServer> = OnceLock::new();
    SERVER.get_or_init(MariaDbServer::start)
}

impl TestDb for Postgres {
    async fn create(name: &str) -> (String, Option<TempDir>) {
        let server = tokio::task::spawn_blocking(postgres).await.unwrap();
        let options: sqlx::postgres::PgConnectOptions = server.url("postgres").parse().unwrap();
        let mut admin = options.connect().await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
        sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
        (server.url(name), None)
    }

    async fn connect(url: &str) -> Pool<Self> {
        PoolOptions::new().max_connections(40).connect(url).await.unwrap()
    }

    reads!();
}

impl TestDb for MySql {
    async fn create(name: &str) -> (String, Option<TempDir>) {
        let server = tokio::task::spawn_blocking(mariadb).await.unwrap();
        let options: sqlx::mysql::MySqlConnectOptions = server.url("mysql").parse().unwrap();
        let mut admin = options.connect().await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE `{name}`"));
        sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
        (server.url(name), None)
    }

    async fn connect(url: &str) -> Pool<Self> {
        PoolOptions::new().max_connections(40).connect(url).await.unwrap()
    }

    reads!();
}

impl TestDb for Sqlite {
    async fn create(_: &str) -> (String, Option<TempDir>) {
        let folder = TempDir::new().unwrap();
        (format!("sqlite://{}?mode=rwc", folder.path().join("test.db").display()), Some(folder))
    }

    async fn connect(url: &str) -> Pool<Self> {
        let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
        let options = options
            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
            .synchronous(sqlx::sqlite::SqliteSynchronous::Normal)
            .busy_timeout(std::time::Duration::from_secs(30));
        PoolOptions::new().max_connections(20).connect_with(options).await.unwrap()
    }

    reads!();
}

/// Runs each test on each database.
#[macro_export]
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::setup::Setup::<sqlx::Postgres>::start().await).await;
            })*
        }
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::setup::Setup::<sqlx::MySql>::start().await).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::setup::Setup::<sqlx::Sqlite>::start().await).await;
            })*
        }
    };
}
