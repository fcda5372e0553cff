//! What a handler does in a database is applied exactly once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use optimus_core::{AttemptFacts, BoxError, Context, Data, Task, TaskId, TaskOptions};
use optimus_sql::{Error, Guard as _, Once as _, PerformInTx as _, Tx, purge_once};
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};
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

/// Handlers that are cut off at random points: each effect is applied exactly once.
mod killed {
    use super::*;

    macro_rules! apply {
        ($name:ident, $db:ty, $test:ident, $task:literal) => {
            #[derive(Serialize, Deserialize)]
            struct $name {
                number: i64,
            }

            impl Task for $name {
                const NAME: &'static str = $task;
                type Output = i64;

                fn options() -> TaskOptions {
                    TaskOptions::new().max_losses(1_000)
                }

                async fn run(self, ctx: Context) -> Result<i64, BoxError> {
                    let pool: Pool<$db> = ctx.data().ok_or("no data")?;
                    ctx.once(&pool, async |mut tx| {
                        sqlx::query(insert::<$db>()).bind(self.number).execute(&mut **tx).await?;
                        Ok::<_, BoxError>(self.number)
                    })
                    .await
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let setup = Setup::<$db>::start().await;
                setup.sql(TABLE).await;
                let calls = (0..COUNT).map(|number| $name { number }.call());
                let handles = setup.client.submit_all(calls).await.unwrap();
                let ended = AtomicBool::new(false);
                let rounds = AtomicU32::new(0);
                let kills = async {
                    while !ended.load(Ordering::Relaxed) {
                        let child = concat!("once::killed::", stringify!($test), "_worker");
                        let mut worker = setup.child(child);
                        // Once it has begun, at any point.
                        let before = effects(&setup).await;
                        while effects(&setup).await == before && !ended.load(Ordering::Relaxed) {
                            sleep(Duration::from_millis(2)).await;
                        }
                        sleep(Duration::from_millis(fastrand::u64(0..60))).await;
                        worker.kill9();
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                };
                let waits = async {
                    for (number, handle) in (0..).zip(&handles) {
                        assert_eq!(handle.result_within(3 * SOON).await.unwrap(), number);
                    }
                    ended.store(true, Ordering::Relaxed);
                };
                tokio::join!(kills, waits);
                let twice = "SELECT COUNT(*) FROM (SELECT n FROM effects GROUP BY n \
                             HAVING COUNT(*) <> 1) AS wrong";
                assert_eq!(<$db>::number(&setup.pool, twice).await, 0);
                assert_eq!(effects(&setup).await, COUNT);
                assert!(rounds.load(Ordering::Relaxed) > 2);
            }
        };
    }

    const COUNT: i64 = 400;

    fn insert<DB: TestDb>() -> &'static str {
        if DB::NAME == "PostgreSQL" {
            "INSERT INTO effects VALUES ($1)"
        } else {
            "INSERT INTO effects VALUES (?)"
        }
    }

    async fn work<DB: TestDb, T: Task>() {
        let setup = Setup::<DB>::of_parent().await;
        let worker = setup.worker(&Seen::default()).task_type::<T>().concurrency(4);
        let lease = Duration::from_secs(1);
        worker.lease(lease).data(setup.pool.clone()).run().await.unwrap();
    }

    macro_rules! workers {
        ($($worker:ident: $name:ident, $db:ty;)*) => { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it is the child process of another test"]
            async fn $worker() {
                work::<$db, $name>().await;
            }
        )* };
    }

    apply!(OnPostgres, Postgres, each_effect_is_applied_once_on_postgres, "apply-postgres");
    apply!(OnMariaDb, MySql, each_effect_is_applied_once_on_mariadb, "apply-mariadb");
    apply!(OnSqlite, Sqlite, each_effect_is_applied_once_on_sqlite, "apply-sqlite");
    workers! {
        each_effect_is_applied_once_on_postgres_worker: OnPostgres, Postgres;
        each_effect_is_applied_once_on_mariadb_worker: OnMariaDb, MySql;
        each_effect_is_applied_once_on_sqlite_worker: OnSqlite, Sqlite;
    }
}
