//! How long claims take beside an operation over 1,000,000 tasks.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    time::{Duration, Instant},
};

use optimus_core::{
    Due, OperationAct, PACED, QueueName, Task, TaskState, WorkerId, broker::Broker,
};
use optimus_testkit::{RedisServer, eventually};
use redis::{Value, aio::MultiplexedConnection};
use tokio::{sync::watch, time::interval};

use crate::{
    common::{Bench, Double, completions::success_of},
    operations::{all, counted},
};

const TASKS: u32 = 1_000_000;
const A_CALL: usize = 10_000;
/// How many commands are logged.
const LOGGED: usize = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);
/// The time between two claims.
const EACH: Duration = Duration::from_millis(4);
/// Claims are measured in windows, in which the operation goes on or stands still by turns.
const WINDOW: Duration = Duration::from_secs(4);
/// At most so many windows of each kind are measured. Then the operation is left as it is.
const WINDOWS: usize = 8;
/// Those at the begin of a window do not count: an operation that stood still takes it for a slow
/// call, and rests for a second.
const NOT_COUNTED: Duration = Duration::from_millis(1_250);

/// A worker that claims one task at a time, in a queue of its own.
struct Steady {
    client: optimus_core::Client,
    queue: QueueName,
    worker: WorkerId,
    seq: u64,
}

impl Steady {
    async fn new(bench: &Bench) -> Self {
        let client = bench.client_builder().connect().await.unwrap();
        let queue = QueueName::new("steady").unwrap();
        let worker = WorkerId::from_stored("steady");
        client.broker().register(&queue, &worker, HOUR, "{}").await.unwrap();
        Self { client, queue, worker, seq: 0 }
    }

    fn broker(&self) -> &Broker {
        self.client.broker()
    }

    /// Submits a task, claims it, and completes it. Returns how long the claim took.
    async fn claim(&mut self) -> Duration {
        let call = Double { number: 1 }.call().queue(self.queue.clone());
        self.client.submit(call).await.unwrap();
        self.seq += 1;
        let begun = Instant::now();
        let claimed = self.broker().claim(&self.queue, &self.worker, self.seq, 1).await.unwrap();
        let took = begun.elapsed();
        let done = success_of::<Double>(&claimed, &self.worker);
        let call = self.broker().complete_call(&self.queue, &self.worker, &[done]);
        self.broker().report(call).await.unwrap();
        took
    }

    /// Claims for a window. Returns how long the claims took, after its first part.
    async fn claims(&mut self) -> Vec<Duration> {
        let (begun, mut times, mut ticks) = (Instant::now(), Vec::new(), interval(EACH));
        while begun.elapsed() < WINDOW {
            ticks.tick().await;
            let took = self.claim().await;
            if begun.elapsed() > NOT_COUNTED {
                times.push(took);
            }
        }
        times
    }
}

/// Works only while the gate is open.
async fn while_open<F: Future>(mut gate: watch::Receiver<bool>, work: F) -> F::Output {
    let mut work = pin!(work);
    loop {
        gate.wait_for(|is_open| *is_open).await.unwrap();
        tokio::select! {
            done = &mut work => return done,
            shut = gate.wait_for(|is_open| !is_open) => drop(shut.unwrap()),
        }
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get((times.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// Logs what the server runs for some commands, and prints how long the scripts of other queues
/// took, by hash.
async fn print_scripts(admin: &mut MultiplexedConnection) {
    let set = async |admin: &mut MultiplexedConnection, name: &str, value: i64| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg(name).arg(value).exec_async(admin).await.unwrap();
    };
    redis::cmd("SLOWLOG").arg("RESET").exec_async(admin).await.unwrap();
    set(admin, "slowlog-max-len", 100_000).await;
    set(admin, "slowlog-log-slower-than", 0).await;
    let is_logged = async || {
        let logged: usize =
            redis::cmd("SLOWLOG").arg("LEN").query_async(&mut *admin).await.unwrap();
        logged >= LOGGED
    };
    eventually("enough commands are logged", HOUR, is_logged).await;
    set(admin, "slowlog-log-slower-than", -1).await;
    let log: Vec<(u64, u64, u64, Vec<String>, Value, Value)> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(admin).await.unwrap();
    let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for (_, _, us, words, ..) in log {
        let [verb, hash, _, key, ..] = &*words else { continue };
        if verb.eq_ignore_ascii_case("evalsha") && !key.contains(":steady:") {
            let key = key.rsplit(':').next().unwrap_or_default();
            let name = format!("{} ({key}, {} words)", &hash[..8], words.len());
            times.entry(name).or_default().push(Duration::from_micros(us));
        }
    }
    for (name, mut times) in times {
        let [half, most, longest] = [50, 99, 100].map(|percent| percentile(&mut times, percent));
        println!("  script {name}: {}; {half:?}, {most:?}, {longest:?}", times.len());
    }
}

/// Claims for a window, while another client sends so many `PING` a window: the least that a client
/// can do which is as busy as an operation.
async fn beside_pings(
    steady: &mut Steady,
    admin: &MultiplexedConnection,
    pings: u32,
) -> Vec<Duration> {
    let mut admin = admin.clone();
    let pinging = tokio::spawn(async move {
        let mut ticks = interval(WINDOW / pings.max(1));
        loop {
            ticks.tick().await;
            redis::cmd("PING").exec_async(&mut admin).await.unwrap();
        }
    });
    let times = steady.claims().await;
    pinging.abort();
    times
}

/// Prints how long claims take alone, beside an operation, and beside as many `PING`, window by
/// window.
async fn beside(
    bench: &Bench,
    admin: &mut MultiplexedConnection,
    act: OperationAct,
    of: TaskState,
) {
    let operation = counted(bench, act, all(of)).await;
    let (operations, carrier) = (bench.client.operations(), bench.client.operations());
    operations.confirm(&operation.id, operation.matched, "").await.unwrap();
    let done = async || operations.get(&operation.id).await.unwrap().unwrap().done;
    let (gate, is_open) = watch::channel(false);
    let id = operation.id.clone();
    let carrying = tokio::spawn(async move {
        while_open(is_open, async { carrier.carry(&id).await.unwrap() }).await
    });
    let mut steady = Steady::new(bench).await;
    println!("{act:?} of {} tasks", operation.matched);
    let (mut alone, mut beside, mut pinged) = (Vec::new(), Vec::new(), Vec::new());
    for window in 0..WINDOWS {
        alone.extend(steady.claims().await);
        gate.send_replace(true);
        if window == 0 {
            // It goes on by then.
            drop(steady.claims().await);
            print_scripts(admin).await;
        }
        let before = done().await;
        let times = steady.claims().await;
        gate.send_replace(false);
        if carrying.is_finished() {
            break;
        }
        beside.extend(times);
        let calls = (done().await - before) / PACED as u64;
        pinged.extend(beside_pings(&mut steady, admin, u32::try_from(calls).unwrap()).await);
    }
    carrying.abort();
    println!("  {} done in up to {WINDOWS} windows of {WINDOW:?}", done().await);
    let kinds = [("alone", alone), ("beside it", beside), ("beside as many PING", pinged)];
    for (name, mut times) in kinds {
        let [half, most] = [50, 99].map(|percent| percentile(&mut times, percent));
        println!("  {} claims {name}: p50 {half:?}, p99 {most:?}", times.len());
    }
}

/// `cargo test --release -p optimus-journeys --test tasks -- --ignored --nocapture claims_beside`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes, and prints figures"]
async fn figures() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut admin = server.admin().await;
    for _ in 0..TASKS as usize / A_CALL {
        let calls = (0..A_CALL).map(|_| Double { number: 1 }.call().due(Due::In(HOUR * 24)));
        bench.client.submit_all(calls).await.unwrap();
    }
    beside(&bench, &mut admin, OperationAct::Cancel, TaskState::Delayed).await;
}
