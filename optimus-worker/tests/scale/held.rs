//! One worker that holds very many tasks keeps its lease on all of them.

mod common;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::Bench;
use optimus_core::{BoxError, Context, DataKey, Task, TaskId};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

const HELD: usize = 20_000;
const LEASE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(60);

/// Runs until the log lets it end.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_held_tasks_are_not_taken_back_and_none_starts_twice() {
    let bench = Bench::on_redis().await;
    let (end, ended) = watch::channel(false);
    let log = Log { runs: Arc::default(), began: Signal::new(), end: ended };
    let calls = (0..HELD).map(|_| Hold {}.call());
    bench.client.submit_all(calls).await.unwrap();
    let worker = || bench.worker().lease(LEASE).task_type::<Hold>().data(log.clone());
    let holder = bench.start(worker().concurrency(HELD));
    let all_began = async || log.began.hits() == HELD as u64;
    eventually("all are held", SOON, all_began).await;

    // It would take back what the holder could not keep. The leases' time has to pass.
    let bystander = bench.start(worker().concurrency(1));
    tokio::time::sleep(LEASE * 4).await;
    end.send(true).unwrap();
    holder.stop().await;
    bystander.stop().await;
    let runs = log.runs.lock().unwrap().clone();
    let twice = runs.values().filter(|runs| **runs > 1).count();
    assert_eq!((runs.len(), twice), (HELD, 0), "as many ran, and as many of them twice");
}
