//! What a relay costs the transactions of the user, and what any other client costs them that
//! changes one row as often as a relay does. `cargo test --release -p optimus-transactions --
//! --ignored --nocapture --test-threads 1 speed_writers::` prints it. It needs two cores.

use std::{
    collections::BTreeSet,
    iter::zip,
    process,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use optimus_sql::PerformInTx as _;
use optimus_testkit::{RedisServer, eventually};
use sqlx::{MySql, Postgres, pool::PoolConnection};
use tokio::time::{self, interval, interval_at};

use crate::{
    costs::{Meter, Spent, pin},
    databases::TestDb,
    setup::{SOON, Setup, note},
};

const WRITERS: u32 = 32;
/// How long the writers work in a round.
const ROUND: Duration = Duration::from_secs(2);
/// Each has one with the other and one without, one after the other. The first of the two changes
/// from round to round, so that a slow drift of the machine counts for neither.
const ROUNDS: usize = 12;
/// The time between two transactions of a relay that keeps up.
const SPACING: Duration = Duration::from_millis(8);
/// The time between two transactions of one writer, where they leave the machine time for others:
/// 1,000 transactions a second.
const PACE: Duration = Duration::from_millis(32);

/// Which cores are for what.
#[derive(Clone, Copy)]
enum Cores {
    /// The database and the writers have one, the relay and Redis another.
    Apart,
    /// All have both.
    Shared,
}

/// What runs beside the writers.
#[derive(Clone, Copy)]
enum Other {
    /// A process with a relay: this test of this program.
    Relay(&'static str),
    /// A client with a transaction that changes one row, each [`SPACING`]. It has the cores of the
    /// writers.
    Client,
}

macro_rules! speeds {
    ($($name:ident: $db:ty, $relay:literal),*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "it measures, in a release build"]
        async fn $name() {
            let relay = concat!("frozen::a_relay_of_another_process_on_", $relay);
            for other in [Other::Client, Other::Relay(relay)] {
                compare::<$db>(other, Cores::Apart, PACE).await;
                compare::<$db>(other, Cores::Shared, PACE).await;
                compare::<$db>(other, Cores::Shared, Duration::ZERO).await;
            }
        }
    )* };
}
speeds!(of_postgres: Postgres, "postgres", of_mariadb: MySql, "mariadb");

/// What was measured in all rounds of one kind.
#[derive(Default)]
struct Measured {
    took: Vec<Duration>,
    /// How long a transaction took in the mean, in seconds, by rounds.
    means: Vec<f64>,
    spent: Spent,
}

async fn compare<DB: TestDb>(other: Other, cores: Cores, pace: Duration) {
    let redis = RedisServer::start();
    let setup = Setup::<DB>::on(&redis.url()).await;
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    setup.sql("CREATE TABLE one_row (n bigint NOT NULL)").await;
    setup.sql("INSERT INTO one_row VALUES (0)").await;
    let mut meter = Meter::of(&setup.pool).await;
    let (ours, others) = match cores {
        Cores::Apart => ("0", "1"),
        Cores::Shared => ("0,1", "0,1"),
    };
    pin(process::id(), ours);
    pin(redis.pid(), others);
    // All connections are open, so the next one is that of a relay.
    write(&setup, Duration::ZERO).await;
    let (mut alone, mut beside) = (Measured::default(), Measured::default());
    let none = BTreeSet::new();
    for round in 0..ROUNDS {
        for with_other in [round % 2 == 1, round % 2 == 0] {
            if with_other {
                let cores = (ours, others);
                measure_beside(&setup, &mut meter, other, cores, pace, &mut beside).await;
            } else {
                measure(&setup, &mut meter, (&none, ours), pace, &mut alone).await;
            }
        }
    }
    pin(process::id(), "0,1");
    let cores = if matches!(cores, Cores::Apart) { "cores apart" } else { "cores shared" };
    let load = if pace.is_zero() { "without a pause" } else { "1,000 a second" };
    report(&format!("{}, {cores}, {load}", DB::NAME), other, alone, beside);
}

async fn measure_beside<DB: TestDb>(
    setup: &Setup<DB>,
    meter: &mut Meter<DB>,
    other: Other,
    (ours, others): (&str, &str),
    pace: Duration,
    into: &mut Measured,
) {
    let Other::Relay(relay) = other else {
        let client = tokio::spawn(change_one_row(setup.pool.acquire().await.unwrap()));
        measure(setup, meter, (&BTreeSet::new(), ours), pace, into).await;
        client.abort();
        return;
    };
    let known = meter.connections().await;
    let mut child = setup.child(relay);
    pin(child.pid(), others);
    // What the relay has left would be work of the round.
    setup.all_relayed().await;
    let own = async || meter.connections().await.difference(&known).next().is_some();
    eventually("the relay has a connection", SOON, own).await;
    let own: BTreeSet<u32> = &meter.connections().await - &known;
    measure(setup, meter, (&own, ours), pace, into).await;
    setup.all_relayed().await;
    child.kill9();
    // The next relay may get the number of this thread.
    let has_left = async || meter.connections().await.is_disjoint(&own);
    eventually("the connections of the relay have ended", SOON, has_left).await;
}

async fn change_one_row<DB: TestDb>(mut connection: PoolConnection<DB>) {
    let mut ticks = interval(SPACING);
    loop {
        ticks.tick().await;
        for sql in ["BEGIN", "UPDATE one_row SET n = n + 1", "COMMIT"] {
            DB::run_plain(&mut connection, sql).await.unwrap();
        }
    }
}

/// Writes for a round. `relays` are the threads that serve the relay.
#[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
async fn measure<DB: TestDb>(
    setup: &Setup<DB>,
    meter: &mut Meter<DB>,
    (relays, cores): (&BTreeSet<u32>, &str),
    pace: Duration,
    into: &mut Measured,
) {
    meter.pin(cores);
    let before = meter.read(relays).await;
    let took = write(setup, pace).await;
    into.spent += meter.read(relays).await - before;
    into.means.push(took.iter().sum::<Duration>().as_secs_f64() / took.len() as f64);
    into.took.extend(took);
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

#[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
fn report(name: &str, other: Other, mut alone: Measured, mut beside: Measured) {
    alone.took.sort();
    beside.took.sort();
    let counts = [&alone, &beside].map(|it| it.took.len() as f64);
    let mut ratios: Vec<f64> =
        zip(&alone.means, &beside.means).map(|(then, now)| now / then).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = |quarters: usize| ratios[(ratios.len() - 1) * quarters / 4];
    let at = |it: &Measured, percent: usize| it.took[it.took.len() * percent / 100].as_secs_f64();
    let ratio = |percent: usize| at(&beside, percent) / at(&alone, percent);
    let is_relay = matches!(other, Other::Relay(_));
    let other = if is_relay { "a relay" } else { "another client" };
    println!(
        "{name}: {} transactions alone, p50 {:.0} µs, p99 {:.0}; beside {other} {}, of the mean of \
         a round {:.3} (median of {ROUNDS} pairs; quartiles {:.3} and {:.3}), of p50 {:.3}, of p99 \
         {:.3}",
        counts[0],
        at(&alone, 50) * 1e6,
        at(&alone, 99) * 1e6,
        counts[1],
        quarter(2),
        quarter(1),
        quarter(3),
        ratio(50),
        ratio(99),
    );
    if !is_relay {
        return;
    }
    let each = |time: Duration, of: f64| time.as_secs_f64() * 1e6 / of;
    let (then, now) = (alone.spent, beside.spent);
    println!(
        "    processor of the database, µs a transaction: {:.1} alone (writers {:.1}); {:.1} \
         beside a relay (writers {:.1}, relay {:.1}: {:.1} %)",
        each(then.all(), counts[0]),
        each(then.writers, counts[0]),
        each(now.all(), counts[1]),
        each(now.writers, counts[1]),
        each(now.relay, counts[1]),
        100.0 * now.relay.as_secs_f64() / now.all().as_secs_f64(),
    );
    let turns = (now.turns as f64).max(1.0);
    println!(
        "    a turn of the relay: {:.1} calls, {:.0} µs of the database, {:.1} waits, {:.0} bytes \
         of log; deadlocks {}; waits for locks seen {} alone, {} beside",
        counts[1] / turns,
        each(now.relay, turns),
        now.relay_waits as f64 / turns,
        (now.logged as f64 - then.logged as f64 * counts[1] / counts[0]) / turns,
        now.deadlocks,
        then.lock_waits,
        now.lock_waits,
    );
}
