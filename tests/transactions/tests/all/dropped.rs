//! Handlers that are dropped at any moment, such as by their time limit: nothing stays open, and
//! nothing is half.

use std::{future::poll_fn, task::Poll};

use optimus_sql::{Once as _, PerformInTx as _, Tx, transaction};
use sqlx::{MySql, Pool, Postgres, Sqlite, pool::PoolOptions};
use tokio::time::timeout;

use crate::{
    databases::TestDb,
    once::{attempt, task},
    setup::{SOON, Setup, note},
};

/// Polls a future this many times, and drops it then.
async fn polled<F: Future>(future: F, mut times: u32) -> Option<F::Output> {
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        if times == 0 {
            return Poll::Ready(None);
        }
        times -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Which future is dropped.
#[derive(Debug, Clone, Copy)]
enum Dropped {
    Transaction,
    Once,
}

async fn drop_after<DB: TestDb>(pool: &Pool<DB>, what: Dropped, times: u32) {
    let body = async |_| Ok::<_, optimus_sql::Error>(());
    match what {
        Dropped::Transaction => drop(polled(transaction(pool, body), times).await),
        Dropped::Once => {
            let ctx = attempt(&task(), 1);
            drop(polled(ctx.once(pool, body), times).await);
        }
    }
}

/// The pool has one connection, so that the next user has the one that was dropped. What that user
/// writes is there in the end, as its statement has said.
async fn a_transaction_that_is_dropped_takes_no_later_write_along<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("CREATE TABLE plain (n bigint NOT NULL)").await;
    let mut written = 0;
    for what in [Dropped::Transaction, Dropped::Once] {
        for times in (1..=8).cycle().take(24) {
            let options = PoolOptions::<DB>::new().max_connections(1);
            let pool: Pool<DB> = options.connect(&setup.database).await.unwrap();
            drop_after(&pool, what, times).await;
            let mut connection = pool.acquire().await.unwrap();
            DB::run_plain(&mut connection, "INSERT INTO plain VALUES (1)").await.unwrap();
            drop(connection);
            written += 1;
            pool.close().await;
            let there = DB::number(&setup.pool, "SELECT COUNT(*) FROM plain").await;
            assert_eq!(there, written, "{what:?}, dropped after {times} polls");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_takes_no_later_write_along_on_postgres() {
    a_transaction_that_is_dropped_takes_no_later_write_along(Setup::<Postgres>::start().await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_takes_no_later_write_along_on_mariadb() {
    a_transaction_that_is_dropped_takes_no_later_write_along(Setup::<MySql>::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_takes_no_later_write_along_on_sqlite() {
    a_transaction_that_is_dropped_takes_no_later_write_along(Setup::<Sqlite>::start().await).await;
}

async fn order<DB: TestDb>(mut tx: Tx<DB>) -> Result<i64, optimus_core::BoxError> {
    DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await?;
    note(1, 1).perform_in_tx(&mut tx).await?;
    DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await?;
    note(1, 2).perform_async().await?;
    Ok(7)
}

/// Futures that are dropped at each of their waits.
async fn a_handler_that_is_dropped_leaves_nothing_half<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    setup.sql("CREATE TABLE plain (n bigint NOT NULL)").await;
    let (pool, client) = (&setup.pool, setup.client.clone());
    for times in (0..60).cycle().take(180) {
        drop(polled(client.scope(transaction(pool, order)), times).await);
        let ctx = attempt(&task(), 1);
        drop(polled(client.scope(ctx.once(pool, order)), times).await);
        // What comes next on the pool is committed by itself.
        timeout(SOON, setup.sql("INSERT INTO plain VALUES (1)")).await.expect("no lock");
    }
    let other = DB::connect(&setup.database).await;
    let count = async |sql| timeout(SOON, DB::number(&other, sql)).await.expect("no lock");
    let half = "SELECT (SELECT COUNT(*) FROM orders) - (SELECT COUNT(*) FROM optimus_outbox)";
    assert_eq!(count(half).await, 0, "an order has its call");
    assert_eq!(count("SELECT COUNT(*) FROM plain").await, 180);
    assert!(count("SELECT COUNT(*) FROM orders").await > 0, "some came to their end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_is_dropped_leaves_nothing_half_on_postgres() {
    a_handler_that_is_dropped_leaves_nothing_half(Setup::<Postgres>::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_is_dropped_leaves_nothing_half_on_mariadb() {
    a_handler_that_is_dropped_leaves_nothing_half(Setup::<MySql>::start().await).await;
}
