//! Calls of a part of a transaction that is rolled back to its savepoint.

use optimus_core::BoxError;
use optimus_sql::{PerformInTx as _, transaction};
use sqlx::{Acquire as _, MySql, Postgres, Sqlite};

use crate::{
    databases::TestDb,
    setup::{Setup, note},
};

/// `perform_in_tx` stores the call within the savepoint. `.perform_async()` keeps it until the end
/// of the body, and knows nothing of savepoints.
macro_rules! takes_its_calls_along {
    ($database:ty) => {{
        let setup = Setup::<$database>::start().await;
        let done: Result<(), BoxError> = setup
            .client
            .scope(transaction(&setup.pool, async |mut tx| {
                note(1, 1).perform_in_tx(&mut tx).await?;
                let mut part = tx.begin().await?;
                note(1, 2).perform_in_tx(&mut part).await?;
                part.rollback().await?;
                let mut part = tx.begin().await?;
                note(1, 3).perform_in_tx(&mut part).await?;
                part.commit().await?;
                Ok(())
            }))
            .await;
        done.unwrap();
        let calls = <$database>::number(&setup.pool, "SELECT COUNT(*) FROM optimus_outbox").await;
        assert_eq!(calls, 2);
    }};
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_savepoint_that_is_rolled_back_takes_its_calls_along_on_postgres() {
    takes_its_calls_along!(Postgres);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_savepoint_that_is_rolled_back_takes_its_calls_along_on_mariadb() {
    takes_its_calls_along!(MySql);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_savepoint_that_is_rolled_back_takes_its_calls_along_on_sqlite() {
    takes_its_calls_along!(Sqlite);
}
