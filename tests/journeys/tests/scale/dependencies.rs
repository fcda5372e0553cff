//! Pairs of tasks over several queues and worker processes, submitted in random order. One worker
//! is killed and one is added. Each second task runs, after its first.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Call, Context, DataKey, ErasedCall, Key, Task, TaskOptions};
use optimus_testkit::{Proc, RedisServer, Signal, eventually};
use serde::{Deserialize, Serialize};

use crate::common::{Bench, steps::Journal};

const SOON: Duration = Duration::from_secs(60);

/// Long enough for a machine that is busy, so that no live worker is taken for a dead one.
const LEASE: Duration = Duration::from_secs(5);

/// How many tasks a worker process runs at once.
const SLOTS: usize = 64;

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
#[ignore = "a process for other tests, which start it with what it needs"]
async fn a_worker_process_for_the_other_tests() {
    let bench = Bench::of_parent().await;
    let journal = Journal::in_redis(&bench.url()).await;
    let worker = bench.worker().lease(LEASE).task_type::<First>().task_type::<Second>();
    let worker = worker.queues(QUEUES).data(journal).concurrency(SLOTS);
    let worker = bench.start(worker);
    println!("works");
    Signal::new().wait_for(1).await;
    worker.stop().await;
}

async fn worker_process(bench: &Bench) -> Proc {
    let process = bench.child("dependencies::a_worker_process_for_the_other_tests").start();
    process.wait_for_line("works", SOON).await;
    process
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
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let journal = Journal::in_redis(&redis.url()).await;
    let (mut doomed, _second) = (worker_process(&bench).await, worker_process(&bench).await);
    let begun = Instant::now();
    let mut tasks: Vec<(bool, usize)> =
        (0..size.pairs).flat_map(|pair| [(true, pair), (false, pair)]).collect();
    fastrand::Rng::with_seed(17).shuffle(&mut tasks);
    let submits = async {
        for some in tasks.chunks(10_000) {
            let calls = some.iter().map(
                |(is_first, pair)| {
                    if *is_first { first(*pair) } else { second(*pair) }
                },
            );
            bench.client.submit_all(calls).await.unwrap();
        }
    };
    let harm = async {
        let some_ran = async || journal.len().await > size.pairs / 2;
        eventually("a quarter has run", size.within, some_ran).await;
        doomed.kill9();
        worker_process(&bench).await
    };
    let ((), _added) = tokio::join!(submits, harm);
    let inspector = bench.client.inspector();
    let ended = async || {
        let mut open = 0;
        for queue in QUEUES {
            let now = inspector.counts(queue).await.unwrap();
            open += now.ready + now.blocked + now.delayed + now.retry + now.working;
        }
        open == 0
    };
    eventually("all have ended", size.within, ended).await;
    let took = begun.elapsed();
    let verdict = Verdict::of(&journal.lines().await);
    assert_eq!(verdict.early, [""; 0]);
    assert_eq!((verdict.firsts, verdict.seconds), (size.pairs, size.pairs), "each has run");
    assert!(verdict.reruns <= SLOTS, "{} attempts were repeated", verdict.reruns);
    println!(
        "{} pairs over {} queues in {took:.1?}: each second after its first; the killed worker \
         cost {} repeats",
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
