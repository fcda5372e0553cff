//! Relays that are killed with -9 while writers commit and roll back: nothing is lost, nothing
//! runs twice, nothing that began after a commit overtakes it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus_sql::{PerformInTx as _, submit_all_in_tx};
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{Seen, Setup, note},
};

const WRITERS: u32 = 6;
const RELAYS: usize = 3;

/// The process of a relay.
async fn relay_of<DB: TestDb>() {
    let setup = Setup::<DB>::of_parent().await;
    setup.relay().run().await.unwrap();
}

macro_rules! storms {
    ($($module:ident: $db:path),*) => { $(
        mod $module {
            const RELAY: &str = concat!("storm::", stringify!($module), "::relay");

            #[tokio::test]
            #[ignore = "it is the child process of a storm"]
            async fn relay() {
                super::relay_of::<$db>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn killed_relays_lose_nothing_and_repeat_nothing() {
                super::storm::<$db>(RELAY, 40).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "it takes minutes"]
            async fn a_thousand_killed_relays_lose_nothing_and_repeat_nothing() {
                super::storm::<$db>(RELAY, 1_000).await;
            }
        }
    )* };
}
storms!(on_postgres: sqlx::Postgres, on_mariadb: sqlx::MySql, on_sqlite: sqlx::Sqlite);

/// When a transaction began and when its commit was answered, in ticks of one clock.
type Times = (u64, u64);

/// Orders what happens in all writers.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// One writer: commits and rolls back until it is stopped. Returns the times of its calls that were
/// committed; these have the numbers from 0.
async fn write<DB: TestDb>(
    setup: Arc<Setup<DB>>,
    writer: u32,
    stop: Arc<AtomicBool>,
) -> Vec<Times> {
    let (mut committed, mut times) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let count = [1, 1, 3, 20][fastrand::usize(..4)];
        let is_kept = fastrand::u32(..5) > 0;
        let begun = CLOCK.fetch_add(1, Ordering::SeqCst);
        let mut tx = setup.pool.begin_with(begin::<DB>()).await.unwrap();
        let number = |at: u32| if is_kept { committed + at } else { 1_000_000 + at };
        if count == 1 {
            note(writer, number(0)).perform_in_tx(&mut tx).await.unwrap();
        } else {
            let calls = (0..count).map(|at| note(writer, number(at)));
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
        } else {
            tx.rollback().await.unwrap();
        }
        sleep(Duration::from_millis(2)).await;
    }
    times
}

fn begin<DB: TestDb>() -> &'static str {
    if DB::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" }
}

async fn storm<DB: TestDb>(child: &str, kills: u32) {
    let setup = Arc::new(Setup::<DB>::start().await);
    let (seen, stop) = (Seen::default(), Arc::new(AtomicBool::new(false)));
    let worker = setup.start_worker(&seen);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(setup.clone(), writer, stop.clone())))
        .collect();
    let mut relays: Vec<_> = (0..RELAYS).map(|_| setup.child(child)).collect();
    let killed = AtomicU32::new(0);
    while killed.load(Ordering::Relaxed) < kills {
        sleep(Duration::from_millis(fastrand::u64(20..150))).await;
        let at = fastrand::usize(..RELAYS);
        relays[at].kill9();
        relays[at] = setup.child(child);
        killed.fetch_add(1, Ordering::Relaxed);
    }
    stop.store(true, Ordering::Relaxed);
    let mut committed = Vec::new();
    for writer in writers {
        committed.push(writer.await.unwrap());
    }
    setup.all_relayed().await;
    let all: usize = committed.iter().map(Vec::len).sum();
    seen.has(all).await;
    drop(relays);
    drop(worker);
    let ran = seen.all();
    assert!(all > kills as usize, "the storm has moved {all} calls");
    let mut next: HashMap<u32, u32> = HashMap::new();
    // The latest begin among the calls so far.
    let mut latest = 0;
    for (writer, number) in ran {
        let expected = next.entry(writer).or_default();
        assert_eq!(number, *expected, "writer {writer}: lost, twice or out of order");
        *expected += 1;
        let (begun, ended) = committed[writer as usize][number as usize];
        assert!(ended > latest, "a transaction that began after the commit has overtaken it");
        latest = latest.max(begun);
    }
    for (writer, times) in (0..).zip(committed) {
        let count = next.get(&writer).copied().unwrap_or(0);
        assert_eq!(count as usize, times.len(), "writer {writer}: lost");
    }
    println!("{all} calls, {kills} relays killed");
}
