//! One worker that holds very many tasks keeps its leases on all of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Context, DataKey, Task, TaskId, platform};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::common::Bench;

const LEASE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(60);

/// A task that runs until the log lets it end.
#[derive(Serialize, Deserialize)]
struct Hold {}

#[derive(Clone)]
struct Log {
    runs: Arc<Mutex<HashMap<TaskId, usize>>>,
    began: Signal,
    end: watch::Receiver<bool>,
}

impl Task for Hold {
    const NAME: &'static str = "hold";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Log>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let mut log: Log = ctx.data().unwrap();
        *log.runs.lock().unwrap().entry(ctx.id().clone()).or_default() += 1;
        log.began.hit();
        log.end.wait_for(|end| *end).await?;
        Ok(())
    }
}

/// Returns the least remaining time of a worker's lease during this time.
async fn least_lease_left(bench: &Bench, time: Duration) -> Duration {
    let (mut raw, until) = (bench.raw().await, Instant::now() + time);
    let command = format!("ZRANGE {} 0 0 WITHSCORES", bench.key("default", "workers"));
    let mut least = LEASE;
    while Instant::now() < until {
        let first = raw.run(&command).await;
        let until_ms: u64 = String::from_utf8_lossy(&first[1]).parse().unwrap();
        let until = std::time::UNIX_EPOCH + Duration::from_millis(until_ms);
        least = least.min(until.duration_since(platform::now()).unwrap_or_default());
    }
    least
}

async fn none_is_taken_back_nor_starts_twice(held: usize) {
    let bench = Bench::on_redis().await;
    let (end, ended) = watch::channel(false);
    let log = Log { runs: Arc::default(), began: Signal::new(), end: ended };
    let calls = (0..held).map(|_| Hold {}.call());
    bench.client.submit_all(calls).await.unwrap();
    let worker = || bench.worker().lease(LEASE).task_type::<Hold>().data(log.clone());
    let holder = bench.start(worker().concurrency(held));
    let all_began = async || log.began.hits() == held as u64;
    eventually("all tasks are held", SOON, all_began).await;

    // Another worker would take back the tasks that the holder could not keep. Several leases must
    // pass.
    let bystander = bench.start(worker().concurrency(1));
    let least = least_lease_left(&bench, LEASE * 4).await;
    end.send(true).unwrap();
    holder.stop().await;
    bystander.stop().await;
    let runs = log.runs.lock().unwrap().clone();
    let twice = runs.values().filter(|runs| **runs > 1).count();
    println!(
        "{held} held for {:?}: {} ran, {twice} of them twice; at least {least:?} of a lease of \
         {LEASE:?} remained",
        LEASE * 4,
        runs.len()
    );
    assert_eq!(
        (runs.len(), twice),
        (held, 0),
        "the number of tasks that ran, and the number that ran twice"
    );
    assert!(!least.is_zero(), "a heartbeat arrived after the end of the lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_held_tasks_are_not_taken_back_and_none_starts_twice() {
    none_is_taken_back_nor_starts_twice(50_000).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn a_hundred_thousand_held_tasks_are_not_taken_back_and_none_starts_twice() {
        none_is_taken_back_nor_starts_twice(100_000).await;
    }
}
