//! What a handler does in a database is applied exactly once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::{AttemptFacts, BoxError, Context, Data, TaskId};
use optimus_sql::{Error, Guard as _, Once as _, PerformInTx as _, Tx, purge_once};
use sqlx::Transaction;
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, note},
};

crate::on_each_database! {
    a_repeated_attempt_returns_the_stored_output
    a_body_that_fails_leaves_nothing
    parts_of_a_handler_are_applied_once_each
    two_attempts_at_once_apply_it_once
    follow_ups_are_committed_with_the_effects
    a_frozen_attempt_applies_nothing_after_a_purge
    an_earlier_attempt_does_not_pass_a_guard
    a_key_of_a_guard_is_checked
}

/// An attempt of a task.
pub fn attempt(id: &TaskId, fence: u64) -> Context {
    let deadline = Instant::now() + SOON;
    let facts = AttemptFacts { fence, ..AttemptFacts::first(id.clone(), deadline) };
    Context::new(facts, Arc::new(Data::new()))
}

pub fn task() -> TaskId {
    TaskId::new("default".parse().unwrap())
}

pub const TABLE: &str = "CREATE TABLE effects (n bigint NOT NULL)";

pub async fn effects<DB: TestDb>(setup: &Setup<DB>) -> i64 {
    DB::number(&setup.pool, "SELECT COUNT(*) FROM effects").await
}

/// Adds an effect in the transaction.
pub async fn effect<DB: TestDb>(tx: &mut Transaction<'static, DB>) -> Result<i64, Error> {
    DB::run_plain(tx, "INSERT INTO effects VALUES (1)").await?;
    Ok(7)
}

/// A body that only adds an effect.
pub async fn add_effect<DB: TestDb>(mut tx: Tx<DB>) -> Result<i64, Error> {
    effect(&mut tx).await
}

async fn a_repeated_attempt_returns_the_stored_output<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    for fence in 1..4 {
        let output: Result<i64, Error> = attempt(&id, fence).once(&setup.pool, add_effect).await;
        assert_eq!(output.unwrap(), 7);
    }
    let other: Result<String, Error> =
        attempt(&id, 4).once(&setup.pool, async |_| Ok("seven".to_owned())).await;
    assert!(matches!(other, Err(Error::Output(_))), "the output has another type now");
    assert_eq!(effects(&setup).await, 1);
}

async fn a_body_that_fails_leaves_nothing<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    let failed: Result<i64, BoxError> = attempt(&id, 1)
        .once(&setup.pool, async |mut tx| {
            effect(&mut tx).await?;
            Err("declined".into())
        })
        .await;
    assert_eq!(failed.unwrap_err().to_string(), "declined");
    assert_eq!(effects(&setup).await, 0);
    let output: Result<i64, Error> = attempt(&id, 2).once(&setup.pool, add_effect).await;
    assert_eq!((output.unwrap(), effects(&setup).await), (7, 1));
}

async fn parts_of_a_handler_are_applied_once_each<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    let ctx = attempt(&id, 3);
    for fence in 1..3 {
        let ctx = attempt(&id, fence);
        for part in ["reserve", "pay"] {
            let done: Result<i64, Error> = ctx.once_part(part, &setup.pool, add_effect).await;
            done.unwrap();
        }
    }
    assert_eq!(effects(&setup).await, 2);
    let refused: Result<i64, Error> = ctx.once_part("a b", &setup.pool, add_effect).await;
    assert!(refused.unwrap_err().to_string().contains("a part of `once`"));
}

async fn two_attempts_at_once_apply_it_once<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    let attempts = (1..8).map(|fence| {
        let (ctx, pool) = (attempt(&id, fence), setup.pool.clone());
        async move {
            let slow: Result<i64, Error> = ctx
                .once(&pool, async |mut tx| {
                    sleep(Duration::from_millis(20)).await;
                    effect(&mut tx).await
                })
                .await;
            slow.unwrap()
        }
    });
    let outputs = futures_util::future::join_all(attempts).await;
    assert_eq!(outputs, [7; 7]);
    assert_eq!(effects(&setup).await, 1);
}

async fn follow_ups_are_committed_with_the_effects<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let id = task();
    let client = setup.client.clone();
    for fence in 1..4 {
        let done: Result<(), Error> = client
            .scope(attempt(&id, fence).once(&setup.pool, async |mut tx| {
                note(1, 0).perform_in_tx(&mut tx).await?;
                note(1, 1).perform_async().await?;
                Ok(())
            }))
            .await;
        done.unwrap();
    }
    seen.has(2).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), [(1, 0), (1, 1)]);
    relay.stop().await;
}

async fn a_frozen_attempt_applies_nothing_after_a_purge<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let id = task();
    let applied: Result<i64, Error> = attempt(&id, 5).once(&setup.pool, add_effect).await;
    applied.unwrap();
    assert_eq!(purge_once(&setup.pool, Duration::from_secs(3600)).await.unwrap(), 0);
    setup.sql("UPDATE optimus_once SET at_ms = at_ms - 7200000").await;
    assert_eq!(purge_once(&setup.pool, Duration::from_secs(3600)).await.unwrap(), 1);
    for fence in [4, 5] {
        let late: Result<i64, Error> = attempt(&id, fence).once(&setup.pool, add_effect).await;
        assert!(late.unwrap_err().is_stale());
    }
    assert_eq!(effects(&setup).await, 1);
    let other: Result<i64, Error> = attempt(&task(), 6).once(&setup.pool, add_effect).await;
    assert_eq!((other.unwrap(), effects(&setup).await), (7, 2));
}

async fn an_earlier_attempt_does_not_pass_a_guard<DB: TestDb>(setup: Setup<DB>) {
    let id = task();
    for (fence, key, passes) in
        [(5, "a", true), (5, "a", true), (4, "a", false), (4, "b", true), (6, "a", true)]
    {
        let mut tx = setup.pool.begin().await.unwrap();
        let guarded = attempt(&id, fence).guard(&mut tx, key).await;
        match guarded {
            Ok(()) => tx.commit().await.unwrap(),
            Err(ref problem) => assert!(problem.is_stale(), "{problem}"),
        }
        assert_eq!(guarded.is_ok(), passes, "fence {fence} of {key}");
    }
    // A fence of a transaction that is rolled back has not passed.
    let mut tx = setup.pool.begin().await.unwrap();
    attempt(&id, 9).guard(&mut tx, "a").await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    attempt(&id, 7).guard(&mut tx, "a").await.unwrap();
}

async fn a_key_of_a_guard_is_checked<DB: TestDb>(setup: Setup<DB>) {
    let mut tx = setup.pool.begin().await.unwrap();
    for key in ["", "@once.default", &*"x".repeat(513)] {
        let refused = attempt(&task(), 1).guard(&mut tx, key).await;
        assert!(refused.unwrap_err().to_string().contains("the key of a guard"));
    }
}
