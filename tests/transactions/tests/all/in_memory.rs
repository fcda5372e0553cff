//! SQLite databases in memory, which are lost with their connection. Tests and demos use them with
//! a pool of one connection.

use std::time::Duration;

use optimus_sql::{Outbox as _, PerformInTx as _, Relay, lag, migrate};
use optimus_testkit::{RedisServer, eventually, namespace, shared_redis};
use optimus_worker::{Worker, WorkerBuilder};
use sqlx::{SqlitePool, sqlite::SqlitePoolOptions};
use tokio::time::timeout;

use crate::setup::{Note, SOON, Seen, connect, note, run_worker};

/// How the documents of sqlx and of SQLite write it.
const URLS: [&str; 3] = ["sqlite::memory:", "sqlite://", "sqlite://:memory:"];

async fn pool(url: &str, connections: u32) -> SqlitePool {
    let options = SqlitePoolOptions::new().max_connections(connections);
    let pool = options.acquire_timeout(SOON).connect(url).await.unwrap();
    migrate(&pool).await.unwrap();
    sqlx::query("CREATE TABLE orders (id INTEGER)").execute(&pool).await.unwrap();
    pool
}

fn worker(redis: &str, name: &str, seen: &Seen) -> WorkerBuilder {
    let worker = Worker::builder(redis).namespace(name).task_type::<Note>().data(seen.clone());
    worker.concurrency(1).quiet()
}

async fn order(pool: &SqlitePool, number: u32) {
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("INSERT INTO orders VALUES (?)").bind(number).execute(&mut *tx).await.unwrap();
    note(1, number).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
}

async fn orders(pool: &SqlitePool) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM orders").fetch_one(pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_leaves_the_only_connection_to_the_application() {
    let redis = shared_redis();
    for url in URLS {
        let (name, seen) = (namespace(), Seen::default());
        let client = connect(redis.url(), &name).await;
        let pool = pool(url, 1).await;
        let relay = Relay::new(&pool, &client).start().await.unwrap();
        let worker = run_worker(worker(redis.url(), &name, &seen));
        for number in 0..200 {
            order(&pool, number).await;
        }
        seen.has(200).await;
        let empty = async || lag(&pool).await.unwrap().rows == 0;
        eventually("the outbox is empty", SOON, empty).await;
        relay.stop().await;
        assert_eq!(seen.all(), (0..200).map(|number| (1, number)).collect::<Vec<_>>(), "{url}");
        assert_eq!(orders(&pool).await, 200, "{url}");
        drop(worker);
    }
}

/// The connection is free while the relay waits for Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_redis_does_not_keep_the_connection() {
    let mut server = RedisServer::builder().appendonly_always().start();
    let (name, seen) = (namespace(), Seen::default());
    let client = connect(&server.url(), &name).await;
    let pool = pool(URLS[0], 1).await;
    let relay = Relay::new(&pool, &client).start().await.unwrap();
    server.kill();
    let writes = async {
        for number in 0..100 {
            order(&pool, number).await;
        }
    };
    timeout(Duration::from_secs(20), writes).await.expect("the application goes on");
    assert_eq!((orders(&pool).await, lag(&pool).await.unwrap().rows), (100, 100));
    server.restart();
    let worker = run_worker(worker(&server.url(), &name, &seen));
    seen.has(100).await;
    relay.stop().await;
    assert_eq!(seen.all(), (0..100).map(|number| (1, number)).collect::<Vec<_>>());
    drop(worker);
}

/// A relay whose run is dropped ends its turn, and gives the connection back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_is_dropped_leaves_no_transaction_open() {
    let redis = shared_redis();
    let pool = pool(URLS[0], 1).await;
    let client = connect(redis.url(), &namespace()).await;
    for round in 0..40 {
        let runs = Relay::new(&pool, &client).run();
        let writes = async {
            order(&pool, round).await;
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..3_000))).await;
        };
        tokio::select! {
            ended = runs => panic!("it runs: {ended:?}"),
            () = writes => {}
        }
    }
    let writes = order(&pool, 40);
    timeout(SOON, writes).await.expect("nobody has the lock");
    assert_eq!(orders(&pool).await, 41);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_carries_the_calls_of_a_pool_of_several() {
    let redis = shared_redis();
    let (name, seen) = (namespace(), Seen::default());
    let pool = pool(URLS[0], 4).await;
    let worker = run_worker(worker(redis.url(), &name, &seen).outbox(&pool));
    for number in 0..100 {
        order(&pool, number).await;
    }
    seen.has(100).await;
    assert_eq!(orders(&pool).await, 100);
    drop(worker);
}
