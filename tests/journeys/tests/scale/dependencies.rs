//! Pairs of tasks over several queues and worker processes, submitted in random order. Two workers
//! and Redis are killed and replaced. The second task of each pair runs after the first.

use std::{
    collections::HashMap,
    env,
    time::{Duration, Instant},
};

use optimus_core::{
    BoxError, Call, Client, Context, DataKey, ErasedCall, Inspector, Key, Task, TaskOptions,
};
use optimus_testkit::{Proc, RedisServer, eventually};
use serde::{Deserialize, Serialize};

use crate::common::{Bench, steps::Journal};

const SOON: Duration = Duration::from_secs(60);

/// Long enough for a machine that is busy, so that no live worker is taken for a dead one.
const LEASE: Duration = Duration::from_secs(5);

/// How many tasks a worker process runs at once.
const SLOTS: usize = 64;

/// How many workers are killed.
const KILLED: usize = 2;

/// Names the variable with the address of the journal's server.
const JOURNAL_URL: &str = "OPTIMUS_TEST_JOURNAL";

const QUEUES: [&str; 8] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"];

#[derive(Clone, Copy)]
struct Size {
    pairs: usize,
    within: Duration,
}

/// The first of a pair.
#[derive(Serialize, Deserialize)]
struct First {
    pair: usize,
}

/// The second of a pair.
#[derive(Serialize, Deserialize)]
struct Second {
    pair: usize,
}

/// The queues of a pair, in any combination.
fn queues(pair: usize) -> [&'static str; 2] {
    [QUEUES[pair % 8], QUEUES[pair / 8 % 8]]
}

impl Task for First {
    const NAME: &'static str = "first";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().outcome_ttl(Duration::from_secs(7 * 24 * 60 * 60))
    }

    fn biz_id(&self) -> Option<String> {
        Some(self.pair.to_string())
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Journal>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Journal>().unwrap().write(format!("first {}", self.pair)).await;
        Ok(())
    }
}

impl Task for Second {
    const NAME: &'static str = "second";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Journal>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Journal>().unwrap().write(format!("second {}", self.pair)).await;
        Ok(())
    }
}

fn first(pair: usize) -> ErasedCall {
    First { pair }.call().queue(queues(pair)[0]).erase().unwrap()
}

fn second(pair: usize) -> ErasedCall {
    let call: Call<Second> = Second { pair }.call().queue(queues(pair)[1]);
    call.after(Key::of::<First>(pair.to_string()).queue(queues(pair)[0])).erase().unwrap()
}

#[tokio::test]
#[ignore = "other tests start this process with its settings"]
async fn a_worker_process_for_the_other_tests() {
    let bench = Bench::of_parent().await;
    let journal = Journal::in_redis(&env::var(JOURNAL_URL).unwrap()).await;
    let worker = bench.worker().lease(LEASE).task_type::<First>().task_type::<Second>();
    let worker = worker.queues(QUEUES).data(journal).concurrency(SLOTS);
    let _worker = bench.start(worker);
    println!("works");
    // It works until it is killed, however long the run takes.
    std::future::pending::<()>().await;
}

/// The servers of a run, and its journal, which no fault may touch.
struct Servers {
    redis: RedisServer,
    bench: Bench,
    journal_redis: RedisServer,
    journal: Journal,
}

impl Servers {
    async fn start() -> Self {
        let redis = RedisServer::builder().appendonly_always().start();
        let journal_redis = RedisServer::start();
        let bench = Bench::at(&redis.url()).await;
        let journal = Journal::in_redis(&journal_redis.url()).await;
        Self { redis, bench, journal_redis, journal }
    }

    async fn worker(&self) -> Proc {
        let process = self
            .bench
            .child("dependencies::a_worker_process_for_the_other_tests")
            .env(JOURNAL_URL, self.journal_redis.url())
            .start();
        process.wait_for_line("works", SOON).await;
        process
    }

    /// Kills a worker when a quarter of the tasks has run, then Redis, then another worker.
    async fn harm(mut self, mut workers: [Proc; KILLED + 1], size: Size) -> (Self, Vec<Proc>) {
        let mut added = Vec::new();
        let worker_or_redis = [Some(0), None, Some(1)];
        for (quarter, harmed) in worker_or_redis.into_iter().enumerate() {
            let lines = size.pairs * (quarter + 1) / 2;
            let have_run = async || self.journal.len().await > lines;
            eventually("the next quarter has run", size.within, have_run).await;
            if let Some(worker) = harmed {
                workers[worker].kill9();
                added.push(self.worker().await);
            } else {
                self.redis.restart();
            }
        }
        added.extend(workers);
        (self, added)
    }
}

async fn submit_in_random_order(client: &Client, pairs: usize) {
    let mut tasks: Vec<(bool, usize)> =
        (0..pairs).flat_map(|pair| [(true, pair), (false, pair)]).collect();
    fastrand::Rng::with_seed(17).shuffle(&mut tasks);
    for some in tasks.chunks(10_000) {
        let calls = some
            .iter()
            .map(|(is_first, pair)| if *is_first { first(*pair) } else { second(*pair) });
        client.submit_all(calls).await.unwrap();
    }
}

async fn all_end(inspector: &Inspector, within: Duration) {
    let ended = async || {
        let mut open = 0;
        for queue in QUEUES {
            let now = inspector.counts(queue).await.unwrap();
            open += now.ready + now.blocked + now.delayed + now.retry + now.working;
        }
        open == 0
    };
    eventually("all have ended", within, ended).await;
}

/// What the journal shows.
#[derive(Debug, Default)]
struct Verdict {
    /// Second tasks that began before their first one had run.
    early: Vec<String>,
    /// Tasks that ran again, because their worker was killed.
    reruns: usize,
    firsts: usize,
    seconds: usize,
}

impl Verdict {
    fn of(lines: &[String]) -> Self {
        let (mut verdict, mut runs) = (Self::default(), HashMap::<&str, usize>::new());
        for line in lines {
            let before = runs.entry(line).or_default();
            *before += 1;
            let is_first_run = *before == 1;
            verdict.reruns += usize::from(!is_first_run);
            if let Some(pair) = line.strip_prefix("second ") {
                verdict.seconds += usize::from(is_first_run);
                if !runs.contains_key(&*format!("first {pair}")) {
                    verdict.early.push(line.clone());
                }
            } else {
                verdict.firsts += usize::from(is_first_run);
            }
        }
        verdict
    }
}

async fn each_second_runs_after_its_first(size: Size) {
    let servers = Servers::start().await;
    let workers = [servers.worker().await, servers.worker().await, servers.worker().await];
    let (client, begun) = (servers.bench.client.clone(), Instant::now());
    let submits = submit_in_random_order(&client, size.pairs);
    let ((), (servers, _workers)) = tokio::join!(submits, servers.harm(workers, size));
    all_end(&client.inspector(), size.within).await;
    let took = begun.elapsed();
    let verdict = Verdict::of(&servers.journal.lines().await);
    assert_eq!(verdict.early, [""; 0]);
    assert_eq!((verdict.firsts, verdict.seconds), (size.pairs, size.pairs), "each has run");
    assert!(verdict.reruns <= KILLED * SLOTS, "{} attempts were repeated", verdict.reruns);
    println!(
        "{} pairs over {} queues in {took:.1?}: each second after its first; a restart of Redis \
         and {KILLED} killed workers cost {} repeats",
        size.pairs,
        QUEUES.len(),
        verdict.reruns
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_second_task_of_a_pair_is_early_or_stuck_while_workers_come_and_go() {
    each_second_runs_after_its_first(Size { pairs: 2_000, within: SOON }).await;
}

#[test]
fn the_check_of_a_journal_finds_a_second_that_is_early() {
    let of = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let Verdict { early, reruns, firsts, seconds } = Verdict::of(&lines);
        (early.len(), reruns, firsts, seconds)
    };
    assert_eq!(of(&["first 1", "first 2", "second 2", "second 1"]), (0, 0, 2, 2));
    assert_eq!(of(&["second 1", "first 1"]), (1, 0, 1, 1));
    assert_eq!(of(&["first 1", "first 1", "second 1", "second 1"]), (0, 2, 1, 1));
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn no_second_task_of_a_hundred_thousand_pairs_is_early_or_stuck() {
        let within = Duration::from_secs(1_800);
        each_second_runs_after_its_first(Size { pairs: 100_000, within }).await;
    }
}
