//! Transactions that the database has ended before their body: they are never taken for committed.

use std::time::Duration;

use optimus_core::BoxError;
use optimus_sql::{Error, Once as _, PerformInTx as _, transaction};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::{
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::sleep,
};

use crate::{
    databases::TestDb,
    once::{attempt, task},
    setup::{Setup, note},
};

const USERS: &str = "CREATE TABLE users (id bigint PRIMARY KEY); INSERT INTO users VALUES (7)";

fn is_ended(problem: &BoxError) -> bool {
    problem.downcast_ref::<Error>().is_some_and(|problem| matches!(problem, Error::Ended))
}

/// Runs a body that passes over an error, after which the database has rolled back.
macro_rules! passes_over {
    ($setup:ident, $repeat:literal) => {{
        let done: Result<(), BoxError> = transaction(&$setup.pool, async |mut tx| {
            note(1, 0).perform_in_tx(&mut tx).await?;
            sqlx::query("INSERT INTO users VALUES (8)").execute(&mut **tx).await?;
            sqlx::query($repeat).execute(&mut **tx).await.unwrap_err();
            Ok(())
        })
        .await;
        assert!(is_ended(&done.unwrap_err()));
        let done: Result<(), BoxError> = attempt(&task(), 1)
            .once(&$setup.pool, async |mut tx| {
                sqlx::query("INSERT INTO users VALUES (8)").execute(&mut **tx).await?;
                sqlx::query($repeat).execute(&mut **tx).await.unwrap_err();
                Ok(())
            })
            .await;
        done.unwrap_err();
        assert_eq!(rows(&$setup).await, [1, 0, 0]);
    }};
}

/// Counts users, calls and markers.
async fn rows<DB: TestDb>(setup: &Setup<DB>) -> [i64; 3] {
    let users = DB::number(&setup.pool, "SELECT COUNT(*) FROM users").await;
    let calls = DB::number(&setup.pool, "SELECT COUNT(*) FROM optimus_outbox").await;
    [users, calls, DB::number(&setup.pool, "SELECT COUNT(*) FROM optimus_once").await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_a_body_passes_over_is_no_commit_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    setup.sql(USERS).await;
    passes_over!(setup, "INSERT INTO users VALUES (7)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_a_body_passes_over_is_no_commit_on_sqlite() {
    let setup = Setup::<Sqlite>::start().await;
    setup.sql(USERS).await;
    passes_over!(setup, "INSERT OR ROLLBACK INTO users VALUES (7)");
}

/// An error of a statement does not end a transaction of these.
async fn an_error_of_one_statement_is_no_end<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(USERS).await;
    let done: Result<(), BoxError> = transaction(&setup.pool, async |mut tx| {
        DB::run_plain(&mut tx, "INSERT INTO users VALUES (8)").await?;
        DB::run_plain(&mut tx, "INSERT INTO users VALUES (7)").await.unwrap_err();
        note(1, 0).perform_in_tx(&mut tx).await?;
        Ok(())
    })
    .await;
    done.unwrap();
    assert_eq!(rows(&setup).await, [2, 1, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_one_statement_is_no_end_on_mariadb_and_sqlite() {
    an_error_of_one_statement_is_no_end(Setup::<MySql>::start().await).await;
    an_error_of_one_statement_is_no_end(Setup::<Sqlite>::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_a_body_rolls_back_is_no_end_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    setup.sql(USERS).await;
    let done: Result<(), BoxError> = transaction(&setup.pool, async |mut tx| {
        sqlx::query("INSERT INTO users VALUES (8)").execute(&mut **tx).await?;
        let mut part = sqlx::Acquire::begin(&mut **tx).await?;
        sqlx::query("INSERT INTO users VALUES (7)").execute(&mut *part).await.unwrap_err();
        part.rollback().await?;
        note(1, 0).perform_in_tx(&mut tx).await?;
        Ok(())
    })
    .await;
    done.unwrap();
    assert_eq!(rows(&setup).await, [2, 1, 0]);
}

const ACCOUNTS: &str = "CREATE TABLE account (id bigint PRIMARY KEY, n bigint NOT NULL); \
                        INSERT INTO account WITH RECURSIVE number (id) AS \
                        (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < 50) \
                        SELECT id, 0 FROM number";

static READS: Mutex<()> = Mutex::const_new(());

/// Begins a transaction that is heavier than any other one, and so survives a deadlock over the
/// accounts 1 and 2.
async fn heavy(setup: &Setup<MySql>) -> JoinHandle<()> {
    let (pool, (holds, held)) = (setup.pool.clone(), oneshot::channel::<()>());
    let ended = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let most = "UPDATE account SET n = n + 100 WHERE id > 1";
        sqlx::query(most).execute(&mut *tx).await.unwrap();
        holds.send(()).unwrap();
        let waits = "SELECT COUNT(*) FROM information_schema.innodb_trx AS trx \
                     JOIN information_schema.processlist AS one ON one.id = trx_mysql_thread_id \
                     WHERE trx_state = 'LOCK WAIT' AND one.db = DATABASE()";
        // InnoDB refreshes this table ten times a second, and only if nobody reads it. So one test
        // reads it at a time.
        let reads = READS.lock().await;
        while MySql::number(&pool, waits).await == 0 {
            sleep(Duration::from_millis(150)).await;
        }
        drop(reads);
        let first = "UPDATE account SET n = n + 100 WHERE id = 1";
        sqlx::query(first).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    });
    held.await.unwrap();
    ended
}

/// What a body does that meets the deadlock.
const FIRST: &str = "UPDATE account SET n = n + 1 WHERE id = 1";
const SECOND: &str = "UPDATE account SET n = n + 1 WHERE id = 2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_that_a_body_passes_over_is_no_success_of_once() {
    let setup = Setup::<MySql>::start().await;
    setup.sql(ACCOUNTS).await;
    let (id, other) = (task(), heavy(&setup).await);
    let done: Result<(), BoxError> = attempt(&id, 1)
        .once(&setup.pool, async |mut tx| {
            sqlx::query(FIRST).execute(&mut **tx).await?;
            sqlx::query(SECOND).execute(&mut **tx).await.unwrap_err();
            Ok(())
        })
        .await;
    assert!(is_ended(&done.unwrap_err()));
    other.await.unwrap();
    let done: Result<(), BoxError> = attempt(&id, 2)
        .once(&setup.pool, async |mut tx| {
            sqlx::query(FIRST).execute(&mut **tx).await?;
            sqlx::query(SECOND).execute(&mut **tx).await?;
            Ok(())
        })
        .await;
    done.unwrap();
    let sum = "SELECT CAST(SUM(n) AS SIGNED) FROM account WHERE id < 3";
    assert_eq!(MySql::number(&setup.pool, sum).await, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_not_stored_after_a_deadlock() {
    let setup = Setup::<MySql>::start().await;
    setup.sql(ACCOUNTS).await;
    let other = heavy(&setup).await;
    let done: Result<(), BoxError> = transaction(&setup.pool, async |mut tx| {
        note(1, 1).perform_in_tx(&mut tx).await?;
        sqlx::query(FIRST).execute(&mut **tx).await?;
        sqlx::query(SECOND).execute(&mut **tx).await.unwrap_err();
        note(1, 2).perform_in_tx(&mut tx).await?;
        Ok(())
    })
    .await;
    assert!(is_ended(&done.unwrap_err()));
    other.await.unwrap();
    assert_eq!(MySql::number(&setup.pool, "SELECT COUNT(*) FROM optimus_outbox").await, 0);
}
