//! Limits over several worker processes, some of which are killed. In each window, no more tasks
//! start or run at once than a limit allows. No permit is left afterwards.

use std::{
    collections::{HashMap, HashSet},
    future::pending,
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Context, Limit, QueueName, Rate, Task};
use optimus_testkit::{Proc, RedisServer, eventually};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::common::{Bench, Raw};

const SOON: Duration = Duration::from_secs(60);
/// Long enough for a machine that is busy, so that no live worker is taken for a dead one.
const LEASE: Duration = Duration::from_secs(3);
const LIMITS: u32 = 20;
const SLOTS: usize = 32;
/// The length of a stored id. Redis gets a longer member for a moment, to store a key as a table.
const ID_BYTES: usize = 22;

#[derive(Clone, Copy)]
struct Size {
    processes: usize,
    /// The time in which the limits let all tasks start.
    time: Duration,
    kills: u32,
    within: Duration,
}

#[derive(Serialize, Deserialize)]
struct Knock {
    ms: u64,
}

impl Task for Knock {
    const NAME: &'static str = "knock";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        tokio::time::sleep(Duration::from_millis(self.ms)).await;
        Ok(())
    }
}

/// What the limit of this number allows: how many tasks start in a second, how many start at once
/// after a pause, and how many run at once.
fn allowed(number: u32) -> (u32, u32, u32) {
    let at = number as usize;
    ([20, 50, 100, 200][at % 4], [1, 5, 2, 10][at / 2 % 4], [1, 2, 4, 8, 16][at / 4 % 5])
}

#[tokio::test]
#[ignore = "other tests start this process with its settings"]
async fn a_worker_process_for_the_other_tests() {
    let bench = Bench::of_parent().await;
    let worker = bench.worker().lease(LEASE).task_type::<Knock>();
    let _works = bench.start(worker.concurrency(SLOTS));
    println!("works");
    pending::<()>().await;
}

async fn worker_process(bench: &Bench) -> Proc {
    let process = bench.child("limits::a_worker_process_for_the_other_tests").start();
    process.wait_for_line("works", SOON).await;
    process
}

/// The starts of the tasks of each limit, in ms of Redis' clock, and the most that had a permit at
/// once, as the commands of the scripts show.
#[derive(Default)]
struct Seen {
    starts: HashMap<String, Vec<u64>>,
    working: HashMap<String, HashSet<String>>,
    most: HashMap<String, usize>,
}

impl Seen {
    /// Reads all commands until the end.
    async fn watch(
        url: String,
        ready: oneshot::Sender<()>,
        mut end: oneshot::Receiver<()>,
    ) -> Self {
        let (mut raw, mut seen) = (Raw::connect(&url).await, Self::default());
        raw.run("MONITOR").await;
        ready.send(()).unwrap();
        loop {
            tokio::select! {
                biased;
                line = raw.next_line() => seen.note(&line),
                _ = &mut end => return seen,
            }
        }
    }

    fn note(&mut self, line: &str) {
        let mut words = line.split('"').skip(1).step_by(2);
        let (Some(verb), Some(key)) = (words.next(), words.next()) else { return };
        let Some((_, limit)) = key.split_once(":busy:limit:") else { return };
        let limit = limit.to_owned();
        let working = self.working.entry(limit.clone()).or_default();
        let words: Vec<&str> = words.collect();
        match verb {
            "ZADD" => {
                for pair in words.chunks(2).filter(|pair| pair[1].len() == ID_BYTES) {
                    self.starts.entry(limit.clone()).or_default().push(pair[0].parse().unwrap());
                    working.insert(pair[1].to_owned());
                }
                let most = self.most.entry(limit).or_default();
                *most = (*most).max(working.len());
            }
            "ZREM" => working.retain(|id| !words.contains(&id.as_str())),
            _ => {}
        }
    }

    /// Panics if a window has more starts than its limit allows, or too many ran at once. Returns
    /// how many started, and the share of its rate that the busiest limit reached, in percent.
    fn check(&self) -> (usize, u64) {
        let (mut all, mut percent) = (0, 0);
        for number in 0..LIMITS {
            let (rate, burst, max_working) = allowed(number);
            let name = format!("limit-{number}");
            let (starts, most) = (&self.starts[&name], self.most[&name]);
            assert!(most <= max_working as usize, "{most} tasks of {name} ran at once");
            let interval_us = u64::from(1_000_000 / rate);
            // How much earlier a start is than the rate alone allows, in µs since the first start;
            // and the least such value so far.
            let (mut owed, mut earliest) = (0, i128::MAX);
            for at_ms in starts {
                let ahead = owed - i128::from(*at_ms) * 1_000;
                earliest = earliest.min(ahead);
                let most = i128::from(u64::from(burst - 1) * interval_us);
                assert!(ahead - earliest <= most, "{name} is above its bound at {at_ms} ms");
                owed += i128::from(interval_us);
            }
            let took_us = (starts[starts.len() - 1] - starts[0]).max(1) * 1_000;
            percent = percent.max(starts.len() as u64 * interval_us * 100 / took_us);
            all += starts.len();
        }
        (all, percent)
    }
}

async fn holds_its_bounds(size: Size) {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let (ready, is_watched) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let watcher = tokio::spawn(Seen::watch(redis.url(), ready, ended));
    is_watched.await.unwrap();
    let mut tasks = 0_usize;
    for number in 0..LIMITS {
        let (rate, burst, max_working) = allowed(number);
        let limit = Limit::new().rate(Rate::per_second(rate)).burst(burst).max_working(max_working);
        let name = format!("limit-{number}");
        bench.client.limit(name.as_str()).set(limit).await.unwrap();
        let count = u64::from(rate.min(max_working * 10)) * size.time.as_secs();
        let calls = (0..count).map(|at| Knock { ms: at * 7 % 20 }.call().limit(name.as_str()));
        tasks += bench.client.submit_all(calls.collect::<Vec<_>>()).await.unwrap().len();
    }
    let begun = Instant::now();
    let starting = (0..size.processes).map(|_| worker_process(&bench));
    let mut processes = futures_util::future::join_all(starting).await;
    for _ in 0..size.kills {
        tokio::time::sleep(size.time / (size.kills + 1)).await;
        processes.remove(0).kill9();
        processes.push(worker_process(&bench).await);
    }
    let (inspector, queue) = (bench.client.inspector(), QueueName::new("default").unwrap());
    let is_over = async || {
        let now = inspector.counts(&queue).await.unwrap();
        now.ready + now.blocked + now.retry + now.working == 0
    };
    eventually("all have ended", size.within, is_over).await;
    let took = begun.elapsed();
    end.send(()).unwrap();
    let (starts, percent) = watcher.await.unwrap().check();
    assert!(starts >= tasks, "{starts} of {tasks} tasks have started");
    let mut raw = bench.raw().await;
    for kind in ["busy:", "permits", "loans", "wait:", "waits", "gate:", "gates"] {
        let left = raw.run(&format!("KEYS {}*", bench.key("default", kind))).await;
        assert!(left.is_empty(), "{} keys of {kind} are left", left.len());
    }
    println!(
        "{LIMITS} limits, {} workers, {} killed: {starts} starts of {tasks} tasks in {took:.1?}; \
         no window above its bound, at best {percent} % of a rate; no permit left",
        size.processes, size.kills
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_is_above_its_bound_while_workers_are_killed() {
    let time = Duration::from_secs(2);
    holds_its_bounds(Size { processes: 3, time, kills: 1, within: SOON }).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn no_window_of_twenty_limits_is_above_its_bound_in_a_minute_of_sixteen_workers() {
        let (time, within) = (Duration::from_secs(60), Duration::from_secs(600));
        holds_its_bounds(Size { processes: 16, time, kills: 10, within }).await;
    }
}
