//! A PostgreSQL that ends as in a crash, and whose application does not wait for the disk.

use optimus_sql::{PerformInTx as _, Relay, migrate};
use optimus_testkit::{PostgresServer, namespace, shared_redis};
use sqlx::{Pool, Postgres};

use crate::{
    databases::TestDb,
    setup::{Seen, connect, note, run_worker},
};

/// Commits of the application are written after 10 s, unless another one writes them.
const SETTINGS: [&str; 3] = [
    "ALTER SYSTEM SET synchronous_commit = off",
    "ALTER SYSTEM SET wal_writer_delay = '10s'",
    "SELECT pg_reload_conf()",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_runs_whose_transaction_a_crash_may_lose() {
    let mut server = PostgresServer::start();
    let url = server.url("postgres");
    let pool: Pool<Postgres> = Postgres::connect(&url).await;
    migrate(&pool).await.unwrap();
    sqlx::raw_sql("CREATE TABLE orders (n bigint NOT NULL)").execute(&pool).await.unwrap();
    for setting in SETTINGS {
        sqlx::raw_sql(setting).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let pool: Pool<Postgres> = Postgres::connect(&url).await;
    assert_eq!(Postgres::text(&pool, "SHOW synchronous_commit").await, "off");
    let (shared, namespace, seen) = (shared_redis(), namespace(), Seen::default());
    let client = connect(shared.url(), &namespace).await;
    let worker = optimus_worker::Worker::builder(shared.url()).namespace(&namespace);
    let worker = worker.task_type::<crate::setup::Note>().data(seen.clone()).quiet();
    let _worker = run_worker(worker.concurrency(1));
    let relay = Relay::new(&pool, &client).start().await.unwrap();
    for number in 0..3 {
        let mut tx = pool.begin().await.unwrap();
        Postgres::run_text(&mut tx, format!("INSERT INTO orders VALUES ({number})")).await.unwrap();
        note(1, number).perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        seen.has(number as usize + 1).await;
    }
    server.crash();
    let pool: Pool<Postgres> = Postgres::connect(&url).await;
    let orders = Postgres::number(&pool, "SELECT COUNT(*) FROM orders").await;
    assert_eq!(orders, 3, "the tasks of all have run");
    relay.stop().await;
}
