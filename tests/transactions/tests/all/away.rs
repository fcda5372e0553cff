//! The database is away: at the start of a worker with a relay, and while it runs.

use std::time::Duration;

use optimus_sql::{Error, Outbox as _, OutboxDb, PerformInTx as _, lag};
use optimus_testkit::eventually;
use sqlx::{MySql, Pool, Postgres, Sqlite, pool::PoolOptions};
use tokio::{net::TcpListener, time::timeout};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, note, run_worker},
};

/// How often the database goes away.
const ROUNDS: u32 = 4;

/// A database that a test can close for an application.
trait Closes: TestDb {
    /// Returns the URL of an application.
    fn url_of_app(setup: &Setup<Self>) -> impl Future<Output = String>;
    /// Ends all connections of the application, and allows no new one.
    fn close(setup: &Setup<Self>) -> impl Future<Output = ()>;
    /// Allows connections again.
    fn open(setup: &Setup<Self>) -> impl Future<Output = ()>;
}

async fn in_postgres(setup: &Setup<Postgres>, sql: String) {
    let options: sqlx::postgres::PgConnectOptions = setup.database.parse().unwrap();
    let options = options.database("postgres");
    let mut admin = sqlx::ConnectOptions::connect(&options).await.unwrap();
    Postgres::run_text(&mut admin, sql).await.unwrap();
}

impl Closes for Postgres {
    async fn url_of_app(setup: &Setup<Self>) -> String {
        setup.database.clone()
    }

    async fn close(setup: &Setup<Self>) {
        let name = &setup.namespace;
        in_postgres(setup, format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false")).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname";
        in_postgres(setup, format!("{end} = '{name}'")).await;
    }

    async fn open(setup: &Setup<Self>) {
        let name = &setup.namespace;
        in_postgres(setup, format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await;
    }
}

async fn in_mariadb(setup: &Setup<MySql>, sql: String) {
    MySql::run_text(&mut *setup.pool.acquire().await.unwrap(), sql).await.unwrap();
}

impl Closes for MySql {
    async fn url_of_app(setup: &Setup<Self>) -> String {
        let name = &setup.namespace;
        let create = format!("CREATE USER '{name}'@'localhost'");
        in_mariadb(setup, create).await;
        in_mariadb(setup, format!("GRANT ALL ON `{name}`.* TO '{name}'@'localhost'")).await;
        setup.database.replace("root@", &format!("{name}@"))
    }

    async fn close(setup: &Setup<Self>) {
        let name = &setup.namespace;
        in_mariadb(setup, format!("ALTER USER '{name}'@'localhost' ACCOUNT LOCK")).await;
        in_mariadb(setup, format!("KILL USER '{name}'@'localhost'")).await;
    }

    async fn open(setup: &Setup<Self>) {
        let name = &setup.namespace;
        in_mariadb(setup, format!("ALTER USER '{name}'@'localhost' ACCOUNT UNLOCK")).await;
    }
}

/// Commits an order with its call; an error may come before or after the commit.
async fn order<DB: TestDb>(pool: &Pool<DB>, number: u32) -> Result<(), Error> {
    let mut tx = pool.begin().await?;
    DB::run_text(&mut tx, format!("INSERT INTO orders VALUES ({number})")).await?;
    note(1, number).perform_in_tx(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// The relay goes on, and what was committed is submitted once and in order.
async fn a_database_that_comes_back_goes_on<DB: Closes>() {
    let setup = Setup::<DB>::start().await;
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    let pool = DB::connect(&DB::url_of_app(&setup).await).await;
    let seen = Seen::default();
    let worker = run_worker(setup.worker(&seen).concurrency(1).outbox(&pool));
    let mut number = 0;
    for round in 0..ROUNDS {
        let mut failed = 0;
        let writes = async {
            while failed < 3 {
                failed += u32::from(order(&pool, number).await.is_err());
                number += 1;
            }
        };
        let closes = async {
            let goal = seen.count() + 20;
            eventually("calls run", SOON, async || seen.count() >= goal).await;
            DB::close(&setup).await;
        };
        tokio::join!(writes, closes);
        // Tasks of others run meanwhile.
        setup.client.submit(note(2, round)).await.unwrap();
        let ran = async || seen.all().contains(&(2, round));
        eventually("a task runs", SOON, ran).await;
        DB::open(&setup).await;
    }
    eventually("a call", SOON, async || order(&pool, number).await.is_ok()).await;
    let is_empty = async || lag(&pool).await.is_ok_and(|lag| lag.rows == 0);
    eventually("the outbox is empty", SOON, is_empty).await;
    let select = "SELECT n FROM orders ORDER BY n".to_owned();
    let orders = DB::numbers(&mut *pool.acquire().await.unwrap(), select).await.unwrap();
    seen.has(orders.len() + ROUNDS as usize).await;
    let ran = seen.all().into_iter().filter(|(writer, _)| *writer == 1);
    let ran: Vec<i64> = ran.map(|(_, number)| i64::from(number)).collect();
    assert_eq!(ran, orders);
    drop(worker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_that_comes_back_goes_on() {
    a_database_that_comes_back_goes_on::<Postgres>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_that_comes_back_goes_on() {
    a_database_that_comes_back_goes_on::<MySql>().await;
}

/// The worker does not start, and says why.
async fn refused_start<DB: OutboxDb + TestDb>(setup: &Setup<Sqlite>, pool: &Pool<DB>) -> String {
    let worker = setup.worker(&Seen::default()).outbox(pool).build().unwrap();
    let ended = timeout(SOON, worker.run_until(std::future::pending::<()>())).await;
    let refused = ended.expect("it ends").unwrap_err();
    assert!(refused.is_unavailable(), "{refused:?}");
    let text = refused.to_string();
    assert!(text.starts_with("the database is unavailable: "), "{text}");
    assert!(text.contains("the relay of the outbox") && text.contains(DB::NAME), "{text}");
    text
}

async fn a_worker_without_its_database_says_why<DB: OutboxDb + TestDb>(url: &str, why: &str) {
    let setup = Setup::<Sqlite>::start().await;
    let options = PoolOptions::<DB>::new().acquire_timeout(Duration::from_secs(3));
    let pool = options.connect_lazy(url).unwrap();
    let text = refused_start(&setup, &pool).await;
    assert!(text.contains(why), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_postgres_says_why() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    a_worker_without_its_database_says_why::<Postgres>(url, "refused").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_mariadb_says_why() {
    let url = "mysql://nobody@127.0.0.1:1/none";
    a_worker_without_its_database_says_why::<MySql>(url, "refused").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_sqlite_says_why() {
    let url = "sqlite:///nowhere/none.db";
    a_worker_without_its_database_says_why::<Sqlite>(url, "unable to open").await;
}

async fn a_worker_whose_user_is_refused_is_not_told_to_wait<DB: OutboxDb + TestDb>(pool: Pool<DB>) {
    let setup = Setup::<Sqlite>::start().await;
    let worker = setup.worker(&Seen::default()).outbox(&pool).build().unwrap();
    let ended = timeout(SOON, worker.run_until(std::future::pending::<()>())).await;
    let refused = ended.expect("it ends").unwrap_err();
    assert!(refused.is_invalid(), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("nobody") && !text.contains("try again"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_user_postgres_refuses_is_not_told_to_wait() {
    let setup = Setup::<Postgres>::start().await;
    let options: sqlx::postgres::PgConnectOptions = setup.database.parse().unwrap();
    let pool = PoolOptions::<Postgres>::new().connect_lazy_with(options.username("nobody"));
    a_worker_whose_user_is_refused_is_not_told_to_wait(pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_user_mariadb_refuses_is_not_told_to_wait() {
    let setup = Setup::<MySql>::start().await;
    let options: sqlx::mysql::MySqlConnectOptions = setup.database.parse().unwrap();
    let pool = PoolOptions::<MySql>::new().connect_lazy_with(options.username("nobody"));
    a_worker_whose_user_is_refused_is_not_told_to_wait(pool).await;
}

/// The application has all connections of the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_a_free_connection_says_so() {
    let setup = Setup::<Sqlite>::start().await;
    let options = PoolOptions::<Sqlite>::new().max_connections(1);
    let options = options.acquire_timeout(Duration::from_secs(2));
    let pool = options.connect(&setup.database).await.unwrap();
    let held = pool.acquire().await.unwrap();
    let text = refused_start(&setup, &pool).await;
    assert!(text.contains("all connections of the pool are in use"), "{text}");
    drop(held);
}

/// The server accepts the connection of TCP and says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_database_does_not_answer_says_so() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://nobody@{}/none", silent.local_addr().unwrap());
    a_worker_without_its_database_says_why::<Postgres>(&url, "does not answer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_hook_refuses_each_connection_says_so() {
    let setup = Setup::<Sqlite>::start().await;
    let options = PoolOptions::<Sqlite>::new().acquire_timeout(Duration::from_secs(2));
    let options = options.after_connect(|_, _| Box::pin(async { Err(sqlx::Error::WorkerCrashed) }));
    let pool = options.connect_lazy(&setup.database).unwrap();
    let text = refused_start(&setup, &pool).await;
    assert!(text.contains("look at its hooks"), "{text}");
}
