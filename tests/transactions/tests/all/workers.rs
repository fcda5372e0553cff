//! Workers that carry the calls of their database: one program does both.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use optimus_core::{BoxError, Context, RosterName, Task, TaskOptions};
use optimus_sql::{Error, Once as _, Outbox as _, PerformInTx as _, lag, submit_all_in_tx};
use optimus_testkit::{FaultProxy, Signal, Way, eventually};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Sqlite};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, note, run_worker},
};

crate::on_each_database! {
    a_worker_carries_the_calls_of_its_database
    what_the_last_handler_commits_is_submitted_before_the_worker_ends
    a_worker_without_tables_does_not_start
}

async fn a_worker_carries_the_calls_of_its_database<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let worker = run_worker(setup.worker(&seen).concurrency(1).outbox(&setup.pool));
    let mut tx = setup.pool.begin().await.unwrap();
    submit_all_in_tx(&mut tx, (0..300).map(|number| note(1, number))).await.unwrap();
    tx.commit().await.unwrap();
    seen.has(300).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), (0..300).map(|number| (1, number)).collect::<Vec<_>>());
    drop(worker);
}

/// A handler of which the test knows more than its arguments.
type Act = Arc<dyn Fn(Context, i64) -> Pin<Box<dyn Future<Output = Acted> + Send>> + Send + Sync>;
type Acted = Result<(), BoxError>;

#[derive(Clone)]
struct Acts(Act);

/// A task that does what the data of the worker says.
#[derive(Serialize, Deserialize)]
struct DoAct {
    number: i64,
}

impl Task for DoAct {
    const NAME: &'static str = "do-act";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().max_losses(1_000)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let acts: Acts = ctx.data().ok_or("no data")?;
        (acts.0)(ctx, self.number).await
    }
}

async fn what_the_last_handler_commits_is_submitted_before_the_worker_ends<DB: TestDb>(
    setup: Setup<DB>,
) {
    let begun = Signal::new();
    let (pool, hit) = (setup.pool.clone(), begun.clone());
    let act: Act = Arc::new(move |ctx, _| {
        let (pool, hit) = (pool.clone(), hit.clone());
        Box::pin(async move {
            hit.hit();
            // The worker shuts down while the handler still runs.
            ctx.cancelled().await;
            let mut tx = pool.begin().await?;
            note(1, 1).perform_in_tx(&mut tx).await?;
            Ok(tx.commit().await?)
        })
    });
    let worker = setup.worker(&Seen::default()).task_type::<DoAct>().data(Acts(act));
    let worker = worker.outbox(&setup.pool).shutdown_grace(Duration::from_millis(50));
    let worker = worker.build().unwrap();
    setup.client.submit(DoAct { number: 1 }.call()).await.unwrap();
    worker.run_until(begun.wait_for(1)).await.unwrap();
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 0);
    assert_eq!(setup.client.inspector().counts("default").await.unwrap().ready, 1);
}

async fn a_worker_without_tables_does_not_start<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("DROP TABLE optimus_outbox").await;
    let worker = setup.worker(&Seen::default()).outbox(&setup.pool).build().unwrap();
    let refused = worker.run_until(std::future::pending::<()>()).await.unwrap_err();
    assert!(refused.to_string().contains("run optimus_sql::migrate first"), "{refused}");
    let queues = setup.client.inspector().queues().await.unwrap();
    assert!(queues.is_empty(), "it has not registered: {queues:?}");
}

/// The roster of relays does not depend on the database.
#[tokio::test]
async fn one_relay_is_on_duty_and_the_next_one_follows() {
    let setup = Setup::<Sqlite>::start().await;
    let first = setup.start_relay().await;
    let epoch = "SELECT epoch FROM optimus_stream WHERE name = 'outbox'";
    let epoch = Sqlite::text(&setup.pool, epoch).await;
    let roster = RosterName::relays(&epoch).unwrap();
    let broker = setup.client.broker();
    let members = async || broker.roster(&roster).await.unwrap().members.len();
    let holder = async || {
        let seen = broker.roster(&roster).await.unwrap();
        seen.holders.into_values().map(|(worker, _, _)| worker).next()
    };
    eventually("it is on duty", SOON, async || holder().await.is_some()).await;
    let before = holder().await;
    let next = setup.start_relay().await;
    eventually("the other is known", SOON, async || members().await == 2).await;
    assert_eq!(holder().await, before);
    first.stop().await;
    let is_next = async || holder().await.is_some_and(|now| Some(now) != before);
    eventually("the other is on duty", SOON, is_next).await;
    next.stop().await;
    assert_eq!((holder().await, members().await), (None, 0));
}

/// Programs that are worker and relay are killed with -9 while calls are committed: each effect is
/// applied once.
mod killed {
    use super::*;

    const PROGRAMS: usize = 3;
    const CALLS: i64 = 500;

    macro_rules! storms {
        ($($module:ident: $db:path),*) => { $(
            mod $module {
                const CHILD: &str = concat!("workers::killed::", stringify!($module), "::program");

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "it is the child process of a storm"]
                async fn program() {
                    super::program::<$db>().await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn a_batch_of_a_killed_program_is_submitted_once() {
                    super::holds_a_batch::<$db>(CHILD).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn killed_programs_lose_nothing_and_repeat_nothing() {
                    super::storm::<$db>(CHILD, 12).await;
                }
            }
        )* };
    }
    storms!(on_postgres: sqlx::Postgres, on_mariadb: sqlx::MySql, on_sqlite: sqlx::Sqlite);

    async fn program<DB: TestDb>() {
        let setup = Setup::<DB>::of_parent().await;
        let pool = setup.pool.clone();
        let act: Act = Arc::new(move |ctx, number| {
            let pool: Pool<DB> = pool.clone();
            Box::pin(async move {
                ctx.once(&pool, async |mut tx| {
                    DB::run_text(&mut tx, format!("INSERT INTO effects VALUES ({number})")).await?;
                    // Half of the calls come from handlers.
                    if number < CALLS {
                        let next = DoAct { number: number + CALLS };
                        next.call().perform_in_tx(&mut tx).await?;
                    }
                    Ok::<_, BoxError>(())
                })
                .await
            })
        });
        let worker = setup.worker(&Seen::default()).task_type::<DoAct>().data(Acts(act));
        let lease = Duration::from_secs(1);
        worker.lease(lease).concurrency(4).outbox(&setup.pool).run().await.unwrap();
    }

    /// Its relay has noted the batch, and Redis has it not yet, or has it and the relay does not
    /// know.
    async fn holds_a_batch<DB: TestDb>(child: &str) {
        let mut setup = Setup::<DB>::start().await;
        setup.sql("CREATE TABLE effects (n bigint NOT NULL)").await;
        let proxy = FaultProxy::start(&setup.redis).await;
        let direct = setup.redis.clone();
        let mut number = 0;
        for way in [Way::Up, Way::Down] {
            setup.redis = proxy.url();
            let mut program = setup.child(child);
            setup.redis = direct.clone();
            let applied = async || DB::number(&setup.pool, "SELECT COUNT(*) FROM effects").await;
            let commits = async |numbers: std::ops::Range<i64>| {
                let mut handles = Vec::new();
                for number in numbers {
                    let mut tx = setup.pool.begin().await.unwrap();
                    handles.push(DoAct { number }.call().perform_in_tx(&mut tx).await.unwrap());
                    tx.commit().await.unwrap();
                }
                handles.swap_remove(0)
            };
            commits(number..number + 1).await;
            let all_done = async || applied().await == 2 * (number + 1);
            eventually("the program works", SOON, all_done).await;
            setup.all_relayed().await;
            proxy.black_hole(way);
            let first = commits(number + 1..number + 6).await;
            number += 6;
            if way == Way::Up {
                eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
            } else {
                let inspector = setup.client.inspector();
                let is_sent = async || inspector.get(first.id()).await.unwrap().is_some();
                eventually("a batch is sent", SOON, is_sent).await;
                assert!(setup.is_noted().await, "the relay has no answer, so it waits for one");
            }
            program.kill9();
            proxy.pass();
            let next = setup.child(child);
            let all_done = async || applied().await >= 2 * number;
            eventually("all effects", SOON, all_done).await;
            setup.all_relayed().await;
            assert_eq!(applied().await, 2 * number);
            drop(next);
        }
        let distinct = "SELECT COUNT(DISTINCT n) FROM effects";
        assert_eq!(DB::number(&setup.pool, distinct).await, 2 * number);
    }

    async fn storm<DB: TestDb>(child: &str, kills: u32) {
        let setup = Setup::<DB>::start().await;
        setup.sql("CREATE TABLE effects (n bigint NOT NULL)").await;
        let mut programs: Vec<_> = (0..PROGRAMS).map(|_| setup.child(child)).collect();
        let writes = async {
            for number in 0..CALLS {
                let mut tx = setup.pool.begin().await?;
                DoAct { number }.call().perform_in_tx(&mut tx).await?;
                if number % 7 == 0 {
                    DoAct { number: -1 }.call().perform_in_tx(&mut tx).await?;
                    tx.rollback().await?;
                    tx = setup.pool.begin().await?;
                    DoAct { number }.call().perform_in_tx(&mut tx).await?;
                }
                tx.commit().await?;
            }
            Ok::<_, Error>(())
        };
        let count = async |sql| DB::number(&setup.pool, sql).await;
        let applied = async || count("SELECT COUNT(*) FROM effects").await;
        let kill = async {
            for _ in 0..kills {
                let goal = applied().await + fastrand::i64(5..40);
                eventually("effects", SOON, async || applied().await >= goal).await;
                let at = fastrand::usize(..PROGRAMS);
                programs[at].kill9();
                programs[at] = setup.child(child);
            }
        };
        let (written, ()) = tokio::join!(writes, kill);
        written.unwrap();
        eventually("all effects", 2 * SOON, async || applied().await >= 2 * CALLS).await;
        setup.all_relayed().await;
        let distinct = "SELECT COUNT(DISTINCT n) FROM effects WHERE n >= 0";
        assert_eq!(count(distinct).await, 2 * CALLS);
        assert_eq!(applied().await, 2 * CALLS);
    }
}
