//! How fast calls go from a database to Redis. `cargo test --release -p optimus-transactions --
//! --ignored --nocapture --test-threads 1 speed::` prints it.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Context, Task};
use optimus_sql::{PerformInTx as _, submit_all_in_tx};
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{Seen, Setup, note, run_worker},
};

const ROWS: u32 = 100_000;
const SINGLE: u32 = 1_000;

macro_rules! speeds {
    ($($name:ident: $db:ty),*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "it measures, in a release build"]
        async fn $name() {
            relayed_per_second::<$db>().await;
            time_from_commit_to_start::<$db>("now and then", 5..20).await;
            time_from_commit_to_start::<$db>("without a pause", 0..1).await;
        }
    )* };
}
speeds!(of_postgres: Postgres, of_mariadb: MySql, of_sqlite: Sqlite);

async fn relayed_per_second<DB: TestDb>() {
    let setup = Setup::<DB>::start().await;
    for first in (0..ROWS).step_by(5_000) {
        let mut tx = setup.pool.begin().await.unwrap();
        submit_all_in_tx(&mut tx, (first..first + 5_000).map(|n| note(1, n))).await.unwrap();
        tx.commit().await.unwrap();
    }
    let began = Instant::now();
    let relay = setup.start_relay().await;
    // To count what is left in the database takes as much time as to move some of it.
    let inspector = setup.client.inspector();
    while inspector.counts("default").await.unwrap().ready < u64::from(ROWS) {
        sleep(Duration::from_millis(20)).await;
    }
    let rate = f64::from(ROWS) / began.elapsed().as_secs_f64();
    println!("{}: {rate:.0} calls/s relayed", DB::NAME);
    relay.stop().await;
}

/// The times at which tasks began.
#[derive(Clone)]
struct Began(Arc<Mutex<Vec<Option<Instant>>>>);

#[derive(Serialize, Deserialize)]
struct Timed {
    number: usize,
}

impl Task for Timed {
    const NAME: &'static str = "timed";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let began: Began = ctx.data().ok_or("no data")?;
        began.0.lock().unwrap()[self.number] = Some(Instant::now());
        Ok(())
    }
}

/// From the return of the commit to the start of the handler, which includes the claim. `pauses`
/// are the times between two commits, in ms.
async fn time_from_commit_to_start<DB: TestDb>(load: &str, pauses: Range<u64>) {
    let setup = Setup::<DB>::start().await;
    let began = Began(Arc::new(Mutex::new(vec![None; SINGLE as usize])));
    let worker = setup.worker(&Seen::default()).task_type::<Timed>().data(began.clone());
    let (_worker, relay) = (run_worker(worker), setup.start_relay().await);
    let mut committed = Vec::new();
    for number in 0..SINGLE as usize {
        let mut tx = setup.pool.begin().await.unwrap();
        Timed { number }.call().perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        committed.push(Instant::now());
        if let pause @ 1.. = fastrand::u64(pauses.clone()) {
            sleep(Duration::from_millis(pause)).await;
        }
    }
    while began.0.lock().unwrap().iter().any(Option::is_none) {
        sleep(Duration::from_millis(5)).await;
    }
    let began = began.0.lock().unwrap().clone();
    let waited = |(began, committed): (Option<Instant>, Instant)| {
        began.unwrap().saturating_duration_since(committed)
    };
    let mut waits: Vec<Duration> = began.into_iter().zip(committed).map(waited).collect();
    waits.sort();
    let at = |percent: usize| waits[waits.len() * percent / 100];
    println!("{}, {load}: commit to start p50 {:?}, p99 {:?}", DB::NAME, at(50), at(99));
    relay.stop().await;
}
