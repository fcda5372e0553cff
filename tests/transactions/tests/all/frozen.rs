//! Processes that stand still within a transaction: others wait for a limited time.

use std::time::{Duration, Instant};

use optimus_core::BoxError;
use optimus_sql::{Error, Guard as _, Once as _, PerformInTx as _, lag};
use optimus_testkit::{Proc, eventually};
use sqlx::{MySql, Postgres};

use crate::{
    databases::TestDb,
    once::{attempt, task},
    setup::{SOON, Seen, Setup, note},
};

/// The limits of a session, as texts.
const LIMIT_OF_POSTGRES: &str = "SHOW idle_in_transaction_session_timeout";
const LIMIT_OF_MYSQL: &str = "SELECT CAST(@@SESSION.wait_timeout AS CHAR)";

macro_rules! limit_test {
    ($name:ident, $db:ty, $limit:ident, $short:literal, $usual:literal) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let setup = Setup::<$db>::start().await;
            let options = sqlx::pool::PoolOptions::<$db>::new().max_connections(1);
            let pool = options.connect(&setup.database).await.unwrap();
            for fails in [false, true] {
                let done: Result<String, BoxError> = attempt(&task(), 1)
                    .once(&pool, async |mut tx| {
                        let limit = sqlx::query_scalar($limit).fetch_one(&mut **tx).await?;
                        if fails { Err("it fails".into()) } else { Ok(limit) }
                    })
                    .await;
                assert!(done.is_ok_and(|limit| limit == $short) || fails);
                let after: String = sqlx::query_scalar($limit).fetch_one(&pool).await.unwrap();
                assert_eq!(after, $usual);
            }
        }
    };
}

limit_test!(once_has_a_limit_on_postgres, Postgres, LIMIT_OF_POSTGRES, "1min", "0");
limit_test!(once_has_a_limit_on_mariadb, MySql, LIMIT_OF_MYSQL, "60", "28800");

/// Stops a relay within its transaction, which waits for the rows of another transaction.
async fn frozen_within_its_transaction<DB: TestDb>(setup: &Setup<DB>, relay: &Proc) {
    let is_within = async || {
        let mut look = setup.pool.begin().await.unwrap();
        let sql = "SELECT * FROM optimus_stream FOR UPDATE NOWAIT";
        let is_locked = DB::run_plain(&mut look, sql).await.is_err();
        look.rollback().await.unwrap();
        is_locked
    };
    eventually("the relay is within its transaction", SOON, is_within).await;
    relay.signal("STOP");
}

/// Commits a call, which another relay submits. Returns how long that takes.
async fn goes_on_within<DB: TestDb>(setup: &Setup<DB>) -> Duration {
    let began = Instant::now();
    let relay = setup.start_relay().await;
    setup.commit(1).await;
    setup.all_relayed().await;
    relay.stop().await;
    began.elapsed()
}

/// A relay that is stopped after it has sent a call, in the transaction that deletes it.
async fn a_frozen_relay_keeps_no_lock<DB: TestDb>(test: &str) {
    let setup = Setup::<DB>::start().await;
    let mut first = setup.pool.begin().await.unwrap();
    let promised = note(1, 0).perform_in_tx(&mut first).await.unwrap();
    first.commit().await.unwrap();
    // The relay can't delete the row while this transaction has it.
    let mut holds = setup.pool.begin().await.unwrap();
    DB::run_plain(&mut holds, "SELECT * FROM optimus_outbox FOR UPDATE").await.unwrap();
    let mut frozen = setup.child(test);
    let is_sent = async || setup.client.inspector().get(promised.id()).await.unwrap().is_some();
    eventually("the call is sent", SOON, is_sent).await;
    frozen_within_its_transaction(&setup, &frozen).await;
    holds.rollback().await.unwrap();
    let (took, seen) = (goes_on_within(&setup).await, Seen::default());
    assert!(took < Duration::from_secs(4), "{took:?}");
    let _worker = setup.start_worker(&seen);
    seen.has(2).await;
    assert_eq!(seen.all(), [(1, 0), (1, 1)]);
    frozen.kill9();
}

/// A relay that is stopped while it puts a row aside, which takes several statements.
async fn a_frozen_relay_keeps_the_outbox_for_seconds<DB: TestDb>(test: &str) {
    let setup = Setup::<DB>::start().await;
    setup.sql("INSERT INTO optimus_outbox (queue, id, body) VALUES ('mail', 'none', 'none')").await;
    let mut holds = setup.pool.begin().await.unwrap();
    DB::run_plain(&mut holds, "SELECT * FROM optimus_outbox FOR UPDATE").await.unwrap();
    let mut frozen = setup.child(test);
    frozen_within_its_transaction(&setup, &frozen).await;
    holds.rollback().await.unwrap();
    let took = goes_on_within(&setup).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(lag(&setup.pool).await.unwrap().parked, 1);
    frozen.kill9();
}

macro_rules! relay_tests {
    ($($module:ident: $db:ty, $child:literal),*) => { $(
        mod $module {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_frozen_relay_keeps_no_lock() {
                super::a_frozen_relay_keeps_no_lock::<$db>($child).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_relay_that_is_frozen_between_statements_keeps_the_outbox_for_seconds() {
                super::a_frozen_relay_keeps_the_outbox_for_seconds::<$db>($child).await;
            }
        }
    )* };
}
relay_tests!(
    on_postgres: sqlx::Postgres, "frozen::a_relay_of_another_process_on_postgres",
    on_mariadb: sqlx::MySql, "frozen::a_relay_of_another_process_on_mariadb"
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is the child process of another test"]
async fn a_relay_of_another_process_on_postgres() {
    Setup::<Postgres>::of_parent().await.relay().run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is the child process of another test"]
async fn a_relay_of_another_process_on_mariadb() {
    Setup::<MySql>::of_parent().await.relay().run().await.unwrap();
}

/// Before the first purge a queue has no floor. To read it must not lock what guards insert.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_with_guards_of_other_keys_makes_no_deadlocks_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    let writers = (0..4_u64).map(|writer| {
        let pool = setup.pool.clone();
        tokio::spawn(async move {
            for number in 0..40 {
                let ctx = attempt(&task(), 1_000_000 + number);
                let (key, same) = (format!("account-{writer}-{number}"), ctx.clone());
                let done: Result<(), Error> = ctx
                    .once(&pool, async |mut tx| {
                        same.guard(&mut tx, &key).await?;
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        Ok(())
                    })
                    .await;
                done.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}
