//! What a relay costs the transactions of the user. `cargo test --release -p optimus-transactions
//! -- --ignored --nocapture --test-threads 1 speed_writers::` prints it.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use optimus_sql::PerformInTx as _;
use sqlx::{MySql, Postgres};
use tokio::time::{self, interval_at};

use crate::{
    databases::TestDb,
    setup::{Setup, note},
};

const WRITERS: u32 = 32;
/// How long the writers work in a round.
const ROUND: Duration = Duration::from_secs(3);
/// Each has one with a relay and one without.
const ROUNDS: usize = 5;
/// The time between two transactions of one writer, where they leave the machine time for others:
/// 1,000 transactions a second.
const PACE: Duration = Duration::from_millis(32);

macro_rules! speeds {
    ($($name:ident: $db:ty),*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "it measures, in a release build"]
        async fn $name() {
            compare::<$db>("1,000 a second", PACE).await;
            compare::<$db>("without a pause", Duration::ZERO).await;
        }
    )* };
}
speeds!(of_postgres: Postgres, of_mariadb: MySql);

async fn compare<DB: TestDb>(load: &str, pace: Duration) {
    let setup = Setup::<DB>::start().await;
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.extend(write(&setup, pace).await);
        // What the relay has left would be work of the next round.
        let relay = setup.start_relay().await;
        setup.all_relayed().await;
        beside.extend(write(&setup, pace).await);
        setup.all_relayed().await;
        relay.stop().await;
    }
    let [alone, beside] = [alone, beside].map(|mut took: Vec<Duration>| {
        took.sort();
        took
    });
    let mean =
        |took: &[Duration]| took.iter().sum::<Duration>() / u32::try_from(took.len()).unwrap();
    let at = |took: &[Duration], percent: usize| took[took.len() * percent / 100];
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!(
        "{}, {load}: {} transactions alone, mean {:?}, p50 {:?}, p99 {:?}; beside a relay {}, of \
         the mean {:.3}, of p50 {:.3}, of p99 {:.3}",
        DB::NAME,
        alone.len(),
        mean(&alone),
        at(&alone, 50),
        at(&alone, 99),
        beside.len(),
        ratio(mean(&beside), mean(&alone)),
        ratio(at(&beside, 50), at(&alone, 50)),
        ratio(at(&beside, 99), at(&alone, 99)),
    );
}

/// Returns how long each transaction took.
async fn write<DB: TestDb>(setup: &Setup<DB>, pace: Duration) -> Vec<Duration> {
    let end = Instant::now() + ROUND;
    let writer = async |writer: u32| {
        let mut took = Vec::new();
        let first = time::Instant::now() + pace * writer / WRITERS;
        let mut ticks = interval_at(first, pace.max(Duration::from_nanos(1)));
        while Instant::now() < end {
            if !pace.is_zero() {
                ticks.tick().await;
            }
            let began = Instant::now();
            let mut tx = setup.pool.begin().await.unwrap();
            DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await.unwrap();
            note(writer, 0).perform_in_tx(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            took.push(began.elapsed());
        }
        took
    };
    join_all((0..WRITERS).map(writer)).await.concat()
}
