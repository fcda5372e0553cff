//! Holders of shards that are killed with -9 or frozen while the count changes: each row is applied
//! once, because a late holder does not pass the guard.

use std::time::Duration;

use optimus_core::{BoxError, Round, RunningRound, Shard, Sharded, ShardedOptions, Walk};
use optimus_sql::ShardGuard as _;
use optimus_testkit::eventually;
use sqlx::Pool;
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup},
};

const ROWS: i64 = 600;
const PROGRAMS: usize = 3;
const LEASE: Duration = Duration::from_secs(1);

macro_rules! storms {
    ($($module:ident: $db:path),*) => { $(
        mod $module {
            const CHILD: &str = concat!("shards_killed::", stringify!($module), "::program");

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it is the child process of a storm"]
            async fn program() {
                super::program::<$db>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn each_row_is_applied_once() {
                super::storm::<$db>(CHILD).await;
            }
        }
    )* };
}
storms!(on_postgres: sqlx::Postgres, on_mariadb: sqlx::MySql, on_sqlite: sqlx::Sqlite);

/// A program that serves the shards.
async fn program<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    let options =
        ShardedOptions { shards: 4, idle: Duration::from_millis(100), walk: Walk::Forever };
    let rows = Sharded::new(("rows", "here"), options, Vec::new, |shard| {
        Ok(Box::pin(round::<DB>(shard)) as RunningRound)
    });
    let worker = setup.worker(&Seen::default()).sharded(move || rows).lease(LEASE);
    worker.data(setup.pool.clone()).run().await.unwrap();
}

/// Takes the next rows of the shard. A moment passes between the read and the write, in which the
/// process may be frozen.
async fn round<DB: TestDb>(shard: Shard) -> Result<Round, BoxError> {
    let pool: Pool<DB> = shard.data().ok_or("no data")?;
    let mut tx = pool.begin().await?;
    shard.guard(&mut tx).await?;
    let (count, index) = (shard.count(), shard.index());
    let todo =
        format!("SELECT n FROM todo WHERE done = 0 AND n % {count} = {index} ORDER BY n LIMIT 2");
    let page = DB::numbers(&mut tx, todo).await?;
    sleep(Duration::from_millis(fastrand::u64(0..20))).await;
    for n in &page {
        DB::run_text(&mut tx, format!("INSERT INTO effects VALUES ({n})")).await?;
        DB::run_text(&mut tx, format!("UPDATE todo SET done = 1 WHERE n = {n}")).await?;
    }
    let passed = shard.position::<i64>()?.unwrap_or(0) + 1;
    shard.checkpoint_in(&mut tx, &passed).await?;
    tx.commit().await?;
    Ok(if page.is_empty() { Round::Idle } else { Round::Again })
}

async fn storm<DB: TestDb>(child: &str) {
    let setup = Setup::<DB>::start().await;
    setup.sql("CREATE TABLE effects (n bigint NOT NULL)").await;
    setup.sql("CREATE TABLE todo (n bigint PRIMARY KEY, done bigint NOT NULL)").await;
    let rows: Vec<String> = (0..ROWS).map(|n| format!("({n}, 0)")).collect();
    let mut tx = setup.pool.begin().await.unwrap();
    DB::run_text(&mut tx, format!("INSERT INTO todo VALUES {}", rows.join(","))).await.unwrap();
    tx.commit().await.unwrap();

    let mut programs: Vec<_> = (0..PROGRAMS).map(|_| setup.child(child)).collect();
    let applied = async || DB::number(&setup.pool, "SELECT COUNT(*) FROM effects").await;
    let goes_on = async |by: i64| {
        let goal = (applied().await + by).min(ROWS);
        eventually("rows are applied", SOON, async || applied().await >= goal).await;
    };
    goes_on(1).await;
    for (step, count) in [7, 3, 5].into_iter().enumerate() {
        let frozen = step % PROGRAMS;
        programs[frozen].signal("STOP");
        let of_frozen = format!("-{}-", programs[frozen].pid());
        let is_replaced = async || {
            let shards = setup.client.shards("rows").look().await.unwrap().shards;
            shards.iter().all(|shard| {
                let holder = shard.holder.as_ref();
                holder.is_some_and(|holder| !holder.worker.as_str().contains(&of_frozen))
            })
        };
        eventually("others hold its shards", SOON, is_replaced).await;
        if step == 1 {
            programs[2].kill9();
            programs[2] = setup.child(child);
        }
        setup.client.shards("rows").set_count(count).await.unwrap();
        programs[frozen].signal("CONT");
        goes_on(40).await;
    }
    eventually("all rows are applied", 2 * SOON, async || applied().await >= ROWS).await;
    drop(programs);
    let distinct = "SELECT COUNT(DISTINCT n) FROM effects";
    assert_eq!((applied().await, DB::number(&setup.pool, distinct).await), (ROWS, ROWS));
}
