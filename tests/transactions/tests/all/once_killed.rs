//! Handlers with `once` whose workers are killed with -9 at random moments, and some of which are
//! frozen until their tasks have ended and their markers are purged: each effect is applied exactly
//! once.

use std::{
    env,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use optimus_core::{Backoff, BoxError, Context, Task, TaskHandle, TaskOptions};
use optimus_sql::{Error, Once as _, purge_once};
use optimus_testkit::{Proc, eventually};
use serde::{Deserialize, Serialize};
use sqlx::Pool;
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    once::{TABLE, effects},
    setup::{SOON, Seen, Setup},
};

const LEASE: Duration = Duration::from_secs(1);
const SLOTS: usize = 4;
const HOUR: Duration = Duration::from_secs(3_600);
/// Set in a child whose handlers wait until they are frozen, before they begin in the database.
const IS_ZOMBIE: &str = "CHILD_IS_ZOMBIE";

/// What a handler does.
type Act = Arc<dyn Fn(Context, i64) -> Pin<Box<dyn Future<Output = Acted> + Send>> + Send + Sync>;
type Acted = Result<i64, BoxError>;

#[derive(Clone)]
struct Acts(Act);

/// A task that does what the data of its worker says.
#[derive(Serialize, Deserialize)]
struct Apply {
    number: i64,
}

impl Task for Apply {
    const NAME: &'static str = "apply";
    type Output = i64;

    fn options() -> TaskOptions {
        let again = Backoff::Fixed { wait: Duration::from_millis(50), jitter: 1.0 };
        TaskOptions::new().max_losses(1_000).max_retry(1_000).backoff(again)
    }

    async fn run(self, ctx: Context) -> Acted {
        let acts: Acts = ctx.data().ok_or("no data")?;
        (acts.0)(ctx, self.number).await
    }
}

/// Waits at random, so that a kill finds handlers before, in and after their transactions.
async fn pause() {
    sleep(Duration::from_millis(fastrand::u64(..20))).await;
}

async fn apply<DB: TestDb>(ctx: Context, pool: Pool<DB>, number: i64) -> Result<i64, Error> {
    ctx.once(&pool, async |mut tx| {
        DB::run_text(&mut tx, format!("INSERT INTO effects VALUES ({number})")).await?;
        pause().await;
        Ok(number)
    })
    .await
}

/// Goes on although its worker has lost the lease, as the code of a user may.
async fn apply_late<DB: TestDb>(ctx: Context, pool: Pool<DB>, number: i64) -> Acted {
    println!("begun {number}");
    let late = tokio::spawn(async move {
        sleep(LEASE).await;
        let applied = apply(ctx, pool, number).await;
        let is_refused = applied.as_ref().is_err_and(Error::is_stale);
        println!("{} {number}: {applied:?}", if is_refused { "refused" } else { "passed" });
        applied
    });
    Ok(late.await??)
}

async fn worker_of<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    let (pool, is_zombie) = (setup.pool.clone(), env::var(IS_ZOMBIE).is_ok());
    let act: Act = Arc::new(move |ctx, number| {
        let pool = pool.clone();
        Box::pin(async move {
            if is_zombie {
                return apply_late(ctx, pool, number).await;
            }
            pause().await;
            Ok(apply(ctx, pool, number).await?)
        })
    });
    let worker = setup.worker(&Seen::default()).task_type::<Apply>().data(Acts(act));
    worker.lease(LEASE).concurrency(SLOTS).run().await.unwrap();
}

macro_rules! kills {
    ($($module:ident: $db:path),*) => { $(
        mod $module {
            const CHILD: &str = concat!("once_killed::", stringify!($module), "::worker");

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it is the child process of another test"]
            async fn worker() {
                super::worker_of::<$db>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn each_effect_is_applied_once() {
                super::each_once::<$db>(CHILD, 400, 1).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it takes minutes"]
            async fn each_effect_of_a_thousand_handlers_is_applied_once() {
                super::each_once::<$db>(CHILD, 1_000, 3).await;
            }
        }
    )* };
}
kills!(on_postgres: sqlx::Postgres, on_mariadb: sqlx::MySql, on_sqlite: sqlx::Sqlite);

/// Starts a worker, and freezes it once each of its slots has begun a handler.
async fn zombie<DB: TestDb>(setup: &Setup<DB>, child: &str) -> Proc {
    let zombie = setup.child_with(child, IS_ZOMBIE, "1");
    let begun = async || count_lines(&zombie, "begun") == SLOTS;
    eventually("all slots have begun", SOON, begun).await;
    zombie.signal("STOP");
    zombie
}

fn count_lines(program: &Proc, word: &str) -> usize {
    program.lines().iter().filter(|line| line.contains(word)).count()
}

/// Kills one worker after another, once each has applied something.
async fn kill<DB: TestDb>(setup: &Setup<DB>, child: &str, ended: &AtomicBool) -> u32 {
    let rounds = AtomicU32::new(0);
    while !ended.load(Ordering::Relaxed) {
        let mut worker = setup.child(child);
        let before = effects(setup).await;
        while effects(setup).await == before && !ended.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(2)).await;
        }
        sleep(Duration::from_millis(fastrand::u64(0..60))).await;
        worker.kill9();
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    rounds.into_inner()
}

/// Waits for the results of these tasks, and purges their markers.
async fn end_and_purge<DB: TestDb>(setup: &Setup<DB>, from: i64, handles: &[TaskHandle<i64>]) {
    let mut ids = Vec::new();
    for (number, handle) in (from..).zip(handles) {
        assert_eq!(handle.result_within(5 * SOON).await.unwrap(), number);
        ids.push(format!("'{}'", handle.id().uuid()));
    }
    let ids = ids.join(",");
    let age = format!("UPDATE optimus_once SET at_ms = at_ms - 7200000 WHERE task IN ({ids})");
    DB::run_text(&mut *setup.pool.acquire().await.unwrap(), age).await.unwrap();
    let purged = purge_once(&setup.pool, HOUR).await.unwrap();
    assert_eq!(purged, handles.len() as u64);
}

async fn each_once<DB: TestDb>(child: &str, count: i64, zombies: usize) {
    let setup = Setup::<DB>::start().await;
    setup.sql(TABLE).await;
    let calls = (0..count).map(|number| Apply { number }.call());
    let handles = setup.client.submit_all(calls).await.unwrap();
    let mut frozen = Vec::new();
    for _ in 0..zombies {
        frozen.push(zombie(&setup, child).await);
    }
    let ended = AtomicBool::new(false);
    let ends = async {
        // A purge also refuses attempts that run meanwhile: they are retried.
        let (first, rest) = handles.split_at(handles.len() / 2);
        end_and_purge(&setup, 0, first).await;
        end_and_purge(&setup, count / 2, rest).await;
        ended.store(true, Ordering::Relaxed);
    };
    let (killed, ()) = tokio::join!(kill(&setup, child, &ended), ends);
    for zombie in &frozen {
        zombie.signal("CONT");
        let tried = async || count_lines(zombie, "refused") + count_lines(zombie, "passed");
        eventually("all have tried", SOON, async || tried().await == SLOTS).await;
        assert_eq!(count_lines(zombie, "passed"), 0, "{:?}", zombie.lines());
    }
    let twice = "SELECT COUNT(*) FROM (SELECT n FROM effects GROUP BY n \
                 HAVING COUNT(*) <> 1) AS wrong";
    assert_eq!(DB::number(&setup.pool, twice).await, 0);
    assert_eq!(effects(&setup).await, count);
    assert!(killed > 2);
    let refused = zombies * SLOTS;
    println!("{}: {count} handlers, {killed} workers killed, {refused} refused", DB::NAME);
}
