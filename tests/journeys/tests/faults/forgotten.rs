//! What operators see of workers after Redis has lost what the workers had said, and what workers
//! store again.

use std::{collections::BTreeSet, time::Duration};

use crate::common::{Bench, Double, Raw, Running};
use optimus_core::{
    BoxError, Context, HistoryOptions, ProcessDetails, Schedule, Task, TaskOptions, store_schedule,
};
use optimus_testkit::{RedisServer, eventually};
use serde::{Deserialize, Serialize};

/// By itself, an idle process attends each 3 min.
const SOON: Duration = Duration::from_secs(30);
const QUEUES: [&str; 4] = ["mails", "bills", "reports", "default"];
const SLOTS: usize = 3;

/// An idle worker of several queues on a server of its own.
struct Site {
    bench: Bench,
    raw: Raw,
    worker: Running,
    _server: RedisServer,
}

impl Site {
    /// Starts the worker, and waits until its process is listed.
    async fn start() -> Self {
        let server = RedisServer::start();
        let bench = Bench::at(&server.url()).await;
        let worker = bench.worker().queues(QUEUES).concurrency(SLOTS).task_type::<Double>();
        let (worker, raw) = (bench.start(worker), bench.raw().await);
        let site = Self { bench, raw, worker, _server: server };
        site.is_listed().await;
        site
    }

    async fn processes(&self) -> Vec<ProcessDetails> {
        let page = self.bench.client.inspector().processes(None, 100).await;
        page.map_or_else(|_| Vec::new(), |page| page.rows)
    }

    async fn is_listed(&self) {
        let is_so = async || {
            let rows = self.processes().await;
            rows.len() == 1 && rows[0].doing.slots == SLOTS && !rows[0].is_lost
        };
        eventually("the process is listed with its slots", SOON, is_so).await;
    }

    /// Returns the ids under which the queues know workers, one for each worker of each queue.
    async fn ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for queue in QUEUES {
            let workers = self.bench.client.inspector().workers(queue).await.unwrap_or_default();
            ids.extend(workers.into_iter().map(|worker| worker.id.to_string()));
        }
        ids
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_process_is_soon_listed_again_after_redis_has_lost_all_data() {
    let mut site = Site::start().await;
    site.raw.run("FLUSHALL").await;
    site.is_listed().await;
    let handle = site.bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    site.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_process_is_soon_listed_again_after_a_failover_that_lost_only_what_it_had_said() {
    let mut site = Site::start().await;
    let before = site.ids().await;
    let process = site.processes().await.remove(0).id;
    let (fleet, process) = (
        site.bench.key("@fleet", "fleet"),
        site.bench.key("@fleet", &format!("process:{process}")),
    );
    assert_eq!(site.raw.run(&format!("UNLINK {fleet} {process}")).await, [b"2"]);
    // A failover breaks each connection.
    site.raw.run("CLIENT KILL TYPE normal").await;
    site.is_listed().await;
    assert_eq!(site.ids().await, before, "the worker has lost no lease");
    site.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queues_know_a_worker_under_one_new_id_after_redis_has_lost_all_data() {
    let mut site = Site::start().await;
    let old: BTreeSet<String> = site.ids().await.into_iter().collect();
    assert_eq!(old.len(), 1, "{old:?}");
    site.raw.run("FLUSHALL").await;
    let is_known = async || site.ids().await.len() == QUEUES.len();
    eventually("each queue knows the worker again", SOON, is_known).await;
    let new: BTreeSet<String> = site.ids().await.into_iter().collect();
    assert!(new.len() == 1 && new.is_disjoint(&old), "{old:?}, {new:?}");
    site.worker.stop().await;
}

/// A task of whose queue the code says which schedule and which history it has.
#[derive(Serialize, Deserialize)]
struct Declared {}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The schedule of a release.
fn of_release(release: &str) -> Schedule {
    Schedule::cron("nightly", "0 3 * * *").release(release).call(Declared {}.call())
}

impl Task for Declared {
    const NAME: &'static str = "declared";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().history(30 * DAY)
    }

    fn schedule() -> Option<Schedule> {
        Some(of_release("2.0.0"))
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_code_declares_returns_after_redis_has_lost_all_data() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let worker = bench.start(bench.worker().task_type::<Declared>());
    let is_declared = async || {
        let (client, inspector) = (&bench.client, bench.client.inspector());
        let schedule = client.schedules().get("nightly").await.ok().flatten();
        let history = inspector.history_details("default").await.ok();
        schedule.and_then(|stored| stored.release).as_deref() == Some("2.0.0")
            && history.and_then(|kept| kept.options).as_ref().map(HistoryOptions::kept_days)
                == Some(30)
    };
    eventually("it is stored", SOON, is_declared).await;
    bench.raw().await.run("FLUSHALL").await;
    // A worker of an earlier release may be the first one that notices it.
    let earlier = of_release("1.0.0").check().unwrap();
    store_schedule(bench.client.broker(), &earlier).await.unwrap();
    eventually("the later release decides again", SOON, is_declared).await;
    worker.stop().await;
}
