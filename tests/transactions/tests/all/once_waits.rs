//! Attempts of `once` that begin while an earlier one is in its body, such as one whose process is
//! frozen: they snooze, and use no retry and no connection.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use optimus_core::{
    AttemptFacts, BoxError, Context, Control, Data, Task, TaskHandle, TaskOptions, TaskState,
};
use optimus_sql::{Dialect, Error, Once as _};
use optimus_testkit::{Gate, Proc, eventually};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Sqlite, pool::PoolOptions};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    databases::TestDb,
    once::{TABLE, add_effect, attempt, effect, effects, task},
    setup::{RunningWorker, SOON, Seen, Setup, run_worker},
};

crate::on_each_database! {
    a_later_attempt_snoozes_and_may_run_its_part_again
}

const LEASE: Duration = Duration::from_secs(1);
const SNOOZE: Duration = Duration::from_secs(5);
/// Set in a child: the file that lets its bodies go on.
const GO_ON: &str = "CHILD_GOES_ON";

/// What a handler does.
type Act = Arc<dyn Fn(Context, i64) -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

#[derive(Clone)]
struct Acts(Act);

/// A task that does what the data of its worker says, and must not fail once.
#[derive(Serialize, Deserialize)]
struct Pay {
    number: i64,
}

impl Task for Pay {
    const NAME: &'static str = "pay";
    type Output = String;

    fn options() -> TaskOptions {
        TaskOptions::new().timeout(Duration::from_secs(4)).max_retry(0).max_losses(1_000)
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let acts: Acts = ctx.data().ok_or("no data")?;
        (acts.0)(ctx, self.number).await
    }
}

async fn pay<DB: TestDb>(tx: &mut DB::Connection, number: i64) -> Result<(), Error> {
    Ok(DB::run_text(tx, format!("INSERT INTO effects VALUES ({number})")).await?)
}

/// An attempt that stays in its body until a file is there.
async fn earlier<DB: TestDb>(ctx: Context, pool: Pool<DB>, number: i64) -> Result<String, Error> {
    println!("begun {number}");
    let go_on = env::var(GO_ON).unwrap();
    let paid: Result<String, Error> = ctx
        .once(&pool, async |mut tx| {
            pay::<DB>(&mut tx, number).await?;
            println!("within {number}");
            while !Path::new(&go_on).exists() {
                sleep(Duration::from_millis(5)).await;
            }
            Ok("earlier".to_owned())
        })
        .await;
    println!("ended {number}: {paid:?}");
    paid
}

async fn worker_of<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    let pool = setup.pool.clone();
    let act: Act = Arc::new(move |ctx, number| {
        // It goes on although its worker has lost the lease, as the code of a user may.
        let earlier = tokio::spawn(earlier(ctx, pool.clone(), number));
        Box::pin(async move { Ok(earlier.await??) })
    });
    let worker = setup.worker(&Seen::default()).task_type::<Pay>().data(Acts(act));
    worker.lease(LEASE).concurrency(10).run().await.unwrap();
}

/// What the later attempts have seen.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<LaterSeen>>);

#[derive(Default)]
struct LaterSeen {
    /// The number of each attempt.
    attempts: Vec<u32>,
    /// The tasks that have snoozed.
    snoozed: BTreeSet<i64>,
    bodies: usize,
}

impl Later {
    async fn pay<DB: TestDb>(self, ctx: Context, pool: Pool<DB>, number: i64) -> Paid {
        self.0.lock().unwrap().attempts.push(ctx.attempt());
        let paid: Result<String, Error> = ctx
            .once(&pool, async |mut tx| {
                self.0.lock().unwrap().bodies += 1;
                pay::<DB>(&mut tx, number).await?;
                Ok("later".to_owned())
            })
            .await;
        if let Err(Error::Waits { .. }) = paid {
            self.0.lock().unwrap().snoozed.insert(number);
        }
        Ok(paid?)
    }

    fn snoozed(&self) -> usize {
        self.0.lock().unwrap().snoozed.len()
    }

    fn start<DB: TestDb>(&self, setup: &Setup<DB>, pool: &Pool<DB>) -> RunningWorker {
        let (later, pool) = (self.clone(), pool.clone());
        let act: Act = Arc::new(move |ctx, number| {
            Box::pin(later.clone().pay::<DB>(ctx, pool.clone(), number))
        });
        let worker = setup.worker(&Seen::default()).task_type::<Pay>().data(Acts(act));
        run_worker(worker.lease(LEASE).concurrency(10))
    }
}

type Paid = Result<String, BoxError>;

/// Attempts of another process that is frozen in their bodies.
struct Frozen {
    process: Proc,
    go_on: PathBuf,
    _folder: TempDir,
}

impl Frozen {
    /// Runs the tasks until this many of them are in their bodies.
    async fn start<DB: TestDb>(setup: &Setup<DB>, child: &str, tasks: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let go_on = folder.path().join("go-on");
        let process = setup.child_with(child, GO_ON, go_on.to_str().unwrap());
        // SQLite has one lock: the others wait for it.
        let within = if DB::DIALECT == Dialect::Sqlite { 1 } else { tasks };
        let count = |word| process.lines().iter().filter(|line| line.contains(word)).count();
        let are_within = async || (count("begun"), count("within")) == (tasks, within);
        eventually("the tasks are in their bodies", SOON, are_within).await;
        process.signal("STOP");
        Self { process, go_on, _folder: folder }
    }

    /// Lets the bodies end.
    async fn commit(&mut self) {
        fs::write(&self.go_on, "").unwrap();
        self.process.signal("CONT");
        self.process.wait_for_line("ended 1: Ok", SOON).await;
        self.process.kill9();
    }
}

/// How the transaction of the earlier attempt ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

async fn waits_for<DB: TestDb>(child: &str, end: End) {
    let (setup, later) = (Setup::<DB>::start().await, Later::default());
    setup.sql(TABLE).await;
    let handle = setup.client.submit(Pay { number: 1 }.call()).await.unwrap();
    let mut frozen = Frozen::start(&setup, child, 1).await;
    let _worker = later.start(&setup, &setup.pool);
    let details = async || setup.client.inspector().get(handle.id()).await.unwrap().unwrap();
    let has_said_why = async || {
        let details = details().await;
        let why = "earlier attempt of this task";
        let is_said = details.log.lines.iter().any(|line| line.text.contains(why));
        is_said && details.state == TaskState::Delayed
    };
    eventually("the task snoozes and says why", SOON, has_said_why).await;
    let details = details().await;
    assert_eq!((details.failures, details.losses), (0, 1), "{:?}", details.errors);
    assert_eq!(effects(&setup).await, 0);
    match end {
        End::Commit => frozen.commit().await,
        End::Rollback => {
            frozen.process.kill9();
        }
    }
    let is_rolled_back = end == End::Rollback;
    let by = if is_rolled_back { "later" } else { "earlier" };
    assert_eq!(handle.result_within(SOON).await.unwrap(), by);
    assert_eq!(effects(&setup).await, 1);
    let seen = later.0.lock().unwrap();
    assert_eq!(seen.bodies, usize::from(is_rolled_back));
    assert!(seen.attempts.len() > 1);
    assert!(seen.attempts.iter().all(|number| *number == 2), "{:?}", seen.attempts);
}

/// The pool has fewer connections than attempts wait.
async fn waits_keep_no_connection<DB: TestDb>(child: &str) {
    let (setup, later) = (Setup::<DB>::start().await, Later::default());
    setup.sql(TABLE).await;
    let calls = (0..10).map(|number| Pay { number }.call());
    let handles: Vec<TaskHandle<String>> = setup.client.submit_all(calls).await.unwrap();
    let mut frozen = Frozen::start(&setup, child, 10).await;
    let options = PoolOptions::<DB>::new().max_connections(2);
    let pool = options.connect(&setup.database).await.unwrap();
    let _worker = later.start(&setup, &pool);
    let uses_the_pool = async {
        loop {
            drop(timeout(SOON / 20, pool.acquire()).await.expect("a connection is free").unwrap());
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = uses_the_pool => {}
        () = eventually("all have snoozed", SOON, async || later.snoozed() == 10) => {}
    }
    frozen.process.kill9();
    for handle in &handles {
        assert_eq!(handle.result_within(SOON).await.unwrap(), "later");
    }
    assert_eq!(effects(&setup).await, 10);
}

macro_rules! frozen_tests {
    ($($module:ident: $db:path),*) => { $(
        mod $module {
            use super::{End, waits_for, waits_keep_no_connection, worker_of};

            const CHILD: &str = concat!("once_waits::", stringify!($module), "::worker");

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it is the child process of another test"]
            async fn worker() {
                worker_of::<$db>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn an_attempt_without_retries_runs_after_a_frozen_one_is_rolled_back() {
                waits_for::<$db>(CHILD, End::Rollback).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn an_attempt_without_retries_returns_what_a_frozen_one_commits_later() {
                waits_for::<$db>(CHILD, End::Commit).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn attempts_that_wait_keep_no_connection() {
                waits_keep_no_connection::<$db>(CHILD).await;
            }
        }
    )* };
}
frozen_tests!(
    frozen_on_postgres: sqlx::Postgres,
    frozen_on_mariadb: sqlx::MySql,
    frozen_on_sqlite: sqlx::Sqlite
);

/// The second attempt of a task, with little time left.
fn second() -> (Context, Context) {
    let (id, deadline) = (task(), Instant::now() + Duration::from_millis(400));
    let facts = AttemptFacts { number: 2, fence: 2, ..AttemptFacts::first(id.clone(), deadline) };
    (attempt(&id, 1), Context::new(facts, Arc::new(Data::new())))
}

async fn a_later_attempt_snoozes_and_may_run_its_part_again<DB: TestDb>(setup: Setup<DB>) {
    setup.sql(TABLE).await;
    let ((first, second), gate) = (second(), Gate::new());
    let (pool, closed) = (setup.pool.clone(), gate.clone());
    let first = tokio::spawn(async move {
        let done: Result<i64, Error> = first
            .once(&pool, async |mut tx| {
                let output = effect(&mut tx).await?;
                closed.pass().await;
                Ok(output)
            })
            .await;
        done
    });
    gate.arrivals().wait_for(1).await;
    let refused: Result<i64, Error> = second.once(&setup.pool, add_effect).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::Waits { .. }), "{refused}");
    assert_eq!(Control::of(&refused), Control::Snooze(SNOOZE));
    gate.open();
    let first = first.await.unwrap();
    let known: Result<i64, Error> = second.once(&setup.pool, add_effect).await;
    assert_eq!((first.unwrap(), known.unwrap()), (7, 7));
    assert_eq!(effects(&setup).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_gives_the_connection_its_busy_timeout_back() {
    let setup = Setup::<Sqlite>::start().await;
    let options = PoolOptions::<Sqlite>::new().max_connections(1);
    let pool = options.connect(&setup.database).await.unwrap();
    let locks = setup.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused: Result<i64, Error> = second().1.once(&pool, add_effect).await;
    assert!(matches!(refused, Err(Error::Waits { .. })), "{refused:?}");
    assert_eq!(Sqlite::number(&pool, "PRAGMA busy_timeout").await, 5_000);
    locks.rollback().await.unwrap();
}
