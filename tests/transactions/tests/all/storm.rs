//! Relays and workers that are killed with -9 while writers commit and roll back: nothing is lost,
//! nothing is submitted twice, nothing that began after a commit overtakes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use optimus_sql::{PerformInTx as _, submit_all_in_tx};
use optimus_testkit::{Proc, eventually};
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup},
    storm_runs::{CLOCK, Moved, Runs, Times, assert_exact, moved},
};

const WRITERS: u32 = 8;
const RELAYS: usize = 3;
const WORKERS: usize = 2;
const LEASE: Duration = Duration::from_secs(1);
/// How many calls of the writers may wait in the database and in Redis.
const BEHIND_MAX: u64 = 5_000;

/// The process of a relay.
async fn relay_of<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    setup.relay().run().await.unwrap();
}

/// The process of a worker.
async fn worker_of<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    let worker = setup.worker(&Seen::default()).task_type::<Moved>().data(Runs::of(&setup).await);
    worker.lease(LEASE).concurrency(16).run().await.unwrap();
}

macro_rules! storms {
    ($($module:ident: $db:path),*) => { $(
        mod $module {
            const CHILDREN: [&str; 2] = [
                concat!("storm::", stringify!($module), "::relay"),
                concat!("storm::", stringify!($module), "::worker"),
            ];

            #[tokio::test]
            #[ignore = "it is a child process of a storm"]
            async fn relay() {
                super::relay_of::<$db>().await;
            }

            #[tokio::test]
            #[ignore = "it is a child process of a storm"]
            async fn worker() {
                super::worker_of::<$db>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn killed_relays_and_workers_lose_nothing_and_repeat_nothing() {
                super::storm::<$db>(CHILDREN, 40).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it takes minutes"]
            async fn a_thousand_killed_relays_and_workers_lose_nothing_and_repeat_nothing() {
                super::storm::<$db>(CHILDREN, 1_000).await;
            }
        }
    )* };
}
storms!(on_postgres: sqlx::Postgres, on_mariadb: sqlx::MySql, on_sqlite: sqlx::Sqlite);

/// What all writers share.
#[derive(Default)]
struct Writers {
    stop: AtomicBool,
    committed: AtomicU32,
    is_behind: AtomicBool,
}

/// One writer: commits and rolls back until it is stopped. Returns the times of its calls that were
/// committed; these have the numbers from 0.
async fn write<DB: TestDb>(
    setup: Arc<Setup<DB>>,
    writer: u32,
    writers: Arc<Writers>,
) -> Vec<Times> {
    let (mut committed, mut times) = (0, Vec::new());
    while !writers.stop.load(Ordering::Relaxed) {
        let count = [1, 1, 3, 20][fastrand::usize(..4)];
        let is_kept = fastrand::u32(..5) > 0;
        let begun = CLOCK.fetch_add(1, Ordering::SeqCst);
        let mut tx = setup.pool.begin_with(begin::<DB>()).await.unwrap();
        let number = |at: u32| if is_kept { committed + at } else { 1_000_000 + at };
        if count == 1 {
            moved(writer, number(0)).perform_in_tx(&mut tx).await.unwrap();
        } else {
            let calls = (0..count).map(|at| moved(writer, number(at)));
            submit_all_in_tx(&mut tx, calls).await.unwrap();
        }
        if fastrand::u32(..50) == 0 {
            sleep(Duration::from_millis(50)).await;
        }
        if is_kept {
            tx.commit().await.unwrap();
            committed += count;
            let ended = CLOCK.fetch_add(1, Ordering::SeqCst);
            times.resize(committed as usize, (begun, ended));
            writers.committed.fetch_add(count, Ordering::Relaxed);
        } else {
            tx.rollback().await.unwrap();
        }
        let pause = if writers.is_behind.load(Ordering::Relaxed) { 200 } else { 2 };
        sleep(Duration::from_millis(pause)).await;
    }
    times
}

fn begin<DB: TestDb>() -> &'static str {
    if DB::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" }
}

/// Kills relays and workers at random moments, and starts others. Returns how many workers it has
/// killed.
async fn kill<DB: TestDb>(
    setup: &Setup<DB>,
    (running, children): (&mut [Proc], [&str; 2]),
    (kills, writers): (u32, &Writers),
) -> u32 {
    let mut workers = 0;
    for _ in 0..kills {
        sleep(Duration::from_millis(fastrand::u64(20..150))).await;
        let at = fastrand::usize(..running.len());
        running[at].kill9();
        running[at] = setup.child(children[usize::from(at >= RELAYS)]);
        workers += u32::from(at >= RELAYS);
        let ended = setup.succeeded().await;
        let behind = u64::from(writers.committed.load(Ordering::Relaxed)).saturating_sub(ended);
        writers.is_behind.store(behind > BEHIND_MAX, Ordering::Relaxed);
    }
    workers
}

async fn storm<DB: TestDb>(children: [&str; 2], kills: u32) {
    let setup = Arc::new(Setup::<DB>::start().await);
    let (runs, writers) = (Runs::of(&*setup).await, Arc::new(Writers::default()));
    let writing: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(setup.clone(), writer, writers.clone())))
        .collect();
    let mut running: Vec<Proc> =
        (0..RELAYS + WORKERS).map(|at| setup.child(children[usize::from(at >= RELAYS)])).collect();
    let workers = kill(&setup, (&mut running, children), (kills, &writers)).await;
    writers.stop.store(true, Ordering::Relaxed);
    let mut committed = Vec::new();
    for writer in writing {
        committed.push(writer.await.unwrap());
    }
    setup.all_relayed().await;
    let all = committed.iter().map(Vec::len).sum::<usize>() as u64;
    let is_done = async || setup.succeeded().await >= all;
    eventually("all calls have succeeded", 2 * SOON, is_done).await;
    // A task that is submitted twice succeeds twice.
    assert_eq!(setup.counts_left().await, 0);
    let succeeded = setup.succeeded().await;
    drop(running);
    assert!(all > u64::from(kills), "the storm has moved {all} calls");
    // It names the calls that are wrong, so it comes before the count.
    assert_exact(&runs.all().await, &committed);
    assert_eq!(succeeded, all, "each call succeeds once");
    let relays = kills - workers;
    println!("{}: {all} calls; {relays} relays and {workers} workers killed", DB::NAME);
}
