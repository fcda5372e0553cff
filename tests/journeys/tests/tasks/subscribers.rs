//! Subscribers of `tracing` that block or panic at events of a worker's roles.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::common::{Bench, Double, Gate, Wait};
use optimus_core::{
    BoxError, Context, DateTime, Inspector, QueueName, Task, TaskOptions, TaskState, Utc, WorkerId,
};
use optimus_testkit::{
    EachEvent, FaultProxy, Hold, LogEvent, RedisServer, Signal, eventually, namespace,
};
use optimus_worker::Worker;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tracing::{Level, subscriber::set_default};

const PATIENCE: Duration = Duration::from_secs(20);

/// Calls a function with the text of each event of a role.
fn each_text(each: impl Fn(&str) + Send + Sync + 'static) -> EachEvent {
    EachEvent::new(move |event: LogEvent| each(event.message())).of("optimus_")
}

/// Keeps the only thread of its runtime.
#[derive(Serialize, Deserialize)]
struct Sleep {
    ms: u64,
}

impl Task for Sleep {
    const NAME: &'static str = "sleep";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        thread::sleep(Duration::from_millis(self.ms));
        Ok(())
    }
}

#[tokio::test]
async fn a_subscriber_that_blocks_stops_no_heartbeat_no_cancel_and_no_end() {
    let hold = Hold::new();
    let blocks = hold.clone();
    let _default = set_default(each_text(move |text| {
        if text.contains("whose lease is over") {
            blocks.keep_thread();
        }
    }));
    let (bench, gate, lease) = (Bench::on_redis().await, Gate::new(), Duration::from_millis(600));
    let (queue, dead) = (QueueName::new("default").unwrap(), WorkerId::generate("dead", 1));
    bench.client.broker().register(&queue, &dead, lease, "{}").await.unwrap();
    let worker = bench.start(bench.worker().lease(lease).data(gate.clone()).task_type::<Wait>());
    let handle = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    timeout(PATIENCE, hold.arrivals().wait_for(1)).await.expect("the dead worker is reaped");
    let lease_until =
        async || bench.client.inspector().workers(&queue).await.unwrap()[0].lease_until;
    let three_leases_on = lease_until().await + 3 * Duration::from_millis(600);
    eventually("a heartbeat arrives", PATIENCE, async || lease_until().await > three_leases_on)
        .await;
    handle.cancel().await.unwrap();
    let problem = timeout(PATIENCE, handle.result()).await.expect("the handler is asked to stop");
    assert!(problem.unwrap_err().is_cancelled());
    timeout(PATIENCE, worker.stop()).await.expect("it ends");
    hold.release();
}

#[tokio::test]
async fn a_subscriber_that_panics_costs_no_role_on_any_thread() {
    let bench = Bench::on_memory().await;
    let panicked = Signal::new();
    let (told, hit) = (panicked.clone(), move |text: &str| text.contains("has timed out"));
    let builder = bench.worker().task_type::<Double>().task_type::<Sleep>();
    let worker = builder.build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = thread::spawn(move || {
        let _default = set_default(each_text(move |text| {
            if hit(text) {
                told.hit();
            }
            panic!("the subscriber panics at: {text}");
        }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(worker.run_until(async { drop(stopped.await) }))
    });
    // The claimer logs that it does not know this task, and the maintenance thread ends the other
    // attempt by timeout.
    bench.client.submit(Wait {}.call()).await.unwrap();
    let sleep = Sleep { ms: 1_500 }.call().timeout(Duration::from_millis(300));
    let handle = bench.client.submit(sleep).await.unwrap();
    timeout(PATIENCE, panicked.wait_for(1)).await.expect("the maintenance thread logs the timeout");
    eventually("the timeout is reported", PATIENCE, async || {
        handle.status().await.unwrap() == TaskState::Retry
    })
    .await;
    let double = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
    assert_eq!(double.result_within(PATIENCE).await.unwrap(), 8);
    drop(stop);
    eventually("the worker has ended", PATIENCE, async || running.is_finished()).await;
    running.join().unwrap().expect("no role has ended");
}

#[tokio::test]
async fn all_events_of_a_worker_reach_the_subscriber_of_the_thread_that_started_it() {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let heard = texts.clone();
    let _default = set_default(each_text(move |text| heard.lock().unwrap().push(text.to_owned())));
    let bench = Bench::on_memory().await;
    bench.start(bench.worker().task_type::<Double>()).stop().await;
    let texts = texts.lock().unwrap();
    assert_eq!(
        *texts,
        [
            "the worker has started",
            "the worker ends: it claims nothing more",
            "the worker has ended"
        ]
    );
}

#[tokio::test]
async fn a_lost_worker_that_held_nothing_is_no_warning() {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let record = texts.clone();
    let keep = each_text(move |text| record.lock().unwrap().push(text.to_owned()));
    let _default = set_default(keep.at(Level::WARN));
    let (bench, lease) = (Bench::on_memory().await, Duration::from_millis(500));
    let (queue, lost) = (QueueName::new("default").unwrap(), WorkerId::generate("lost", 1));
    bench.client.broker().register(&queue, &lost, lease, "{}").await.unwrap();
    let worker = bench.start(bench.worker().lease(lease).task_type::<Double>());
    let is_gone = async || {
        let workers = bench.client.inspector().workers(&queue).await.unwrap();
        workers.len() == 1 && workers[0].id != lost
    };
    eventually("the worker is removed", PATIENCE, is_gone).await;
    worker.stop().await;
    let texts = texts.lock().unwrap();
    assert!(texts.iter().all(|text| !text.contains("whose lease is over")), "{texts:?}");
}

/// The lease of the only worker.
struct OnlyLease(Inspector, QueueName);

impl OnlyLease {
    async fn until(&self) -> Option<DateTime<Utc>> {
        let workers = self.0.workers(&self.1).await.unwrap();
        workers.iter().map(|worker| worker.lease_until).max()
    }

    async fn left(&self) -> Duration {
        (self.until().await.unwrap() - Utc::now()).to_std().unwrap_or_default()
    }
}

/// Returns the log of a worker behind a proxy about its heartbeats after a fault, once the log has
/// this text.
async fn heartbeats_of(
    lease: Duration,
    awaited: &str,
    disturb: impl AsyncFnOnce(&FaultProxy, &str, &OnlyLease),
) -> String {
    let texts = Arc::new(Mutex::new(String::new()));
    let heard = texts.clone();
    let _default = set_default(each_text(move |text| {
        if text.contains("heartbeat") {
            heard.lock().unwrap().push_str(text);
        }
    }));
    let redis = RedisServer::start();
    let proxy = FaultProxy::start(&redis.url()).await;
    let namespace = namespace();
    let (near, far) = (
        Bench::shared(&redis.url(), &namespace).await,
        Bench::shared(&proxy.url(), &namespace).await,
    );
    let worker = far.start(far.worker().lease(lease).task_type::<Double>());
    let only = OnlyLease(near.client.inspector(), QueueName::new("default").unwrap());
    eventually("the worker is registered", PATIENCE, async || only.until().await.is_some()).await;
    disturb(&proxy, &redis.url(), &only).await;
    let later = only.until().await.map(|first| first + lease);
    eventually("a heartbeat arrives", PATIENCE, async || only.until().await > later).await;
    let is_logged = async || texts.lock().unwrap().contains(awaited);
    eventually("the heartbeat is logged", PATIENCE, is_logged).await;
    worker.stop().await;
    let texts = texts.lock().unwrap();
    texts.clone()
}

#[tokio::test]
async fn a_heartbeat_that_redis_answers_late_is_logged_with_what_may_keep_redis_busy() {
    let late = heartbeats_of(Duration::from_secs(2), "Redis took long", async |proxy, _, _| {
        proxy.delay(Duration::from_millis(150));
    });
    let text = late.await;
    assert!(text.contains("SLOWLOG"), "{text}");
    assert!(!text.contains("fewer tasks"), "no task runs: {text}");
}

#[tokio::test]
async fn a_heartbeat_that_waited_for_a_connection_gives_no_advice() {
    let lease = Duration::from_secs(6);
    let outage = heartbeats_of(lease, "", async |proxy, url, only| {
        let first = only.until().await;
        let has_renewed = async || only.until().await > first;
        eventually("a heartbeat arrives before the outage", PATIENCE, has_renewed).await;
        proxy.lead_to("unix:///nowhere/redis.sock");
        proxy.cut();
        // The next heartbeat is due after a third of the lease at most, and finds that the
        // connection is broken. Another follows after 250 ms, and has then waited for longer than
        // a tenth of the lease, which is logged if Redis is the reason. It waits for at most half
        // of the lease.
        let late = lease / 2;
        eventually("a heartbeat is late", PATIENCE, async || only.left().await < late).await;
        proxy.lead_to(url);
    });
    assert_eq!(outage.await, "");
}

#[tokio::test]
async fn leases_that_are_over_in_many_queues_at_once_are_logged_in_a_line_or_two() {
    let lines = Arc::new(AtomicUsize::new(0));
    let told = lines.clone();
    let _default = set_default(each_text(move |text| {
        told.fetch_add(
            usize::from(text.starts_with("Redis no longer knows this worker")),
            Ordering::Relaxed,
        );
    }));
    let bench = Bench::on_memory().await;
    let names: Vec<String> = (0..20).map(|at| format!("q{at}")).collect();
    let queues: Vec<QueueName> = names.iter().map(|n| QueueName::new(n.clone()).unwrap()).collect();
    let worker = bench.start(bench.worker().queues(names).task_type::<Double>());
    let inspector = bench.client.inspector();
    let mut ids = Vec::new();
    for queue in &queues {
        let is_there = async || !inspector.workers(queue).await.unwrap().is_empty();
        eventually("the worker is registered", PATIENCE, is_there).await;
        ids.push(inspector.workers(queue).await.unwrap().remove(0).id);
    }
    for (queue, id) in queues.iter().zip(&ids) {
        bench.client.broker().leave(queue, id).await.unwrap();
    }
    for (queue, id) in queues.iter().zip(&ids) {
        let has_new_id = async || {
            let workers = inspector.workers(queue).await.unwrap();
            workers.iter().any(|worker| worker.id != *id)
        };
        eventually("the worker has a new id", PATIENCE, has_new_id).await;
    }
    worker.stop().await;
    let lines = lines.load(Ordering::Relaxed);
    assert!((1..4).contains(&lines), "{lines} lines for {} queues", queues.len());
}

idle_task!(Fragile, "fragile", TaskOptions::new().max_losses(2));

#[tokio::test]
async fn a_task_that_waits_to_run_alone_is_logged_once_however_many_run_alone_before_it() {
    const TASKS: usize = 6;
    let events: Arc<Mutex<Vec<LogEvent>>> = Arc::default();
    let heard = events.clone();
    let keep = move |event: LogEvent| {
        if event.message().contains("the task runs alone") {
            heard.lock().unwrap().push(event);
        }
    };
    let _default = set_default(EachEvent::new(keep).of("optimus_").at(Level::WARN));
    let bench = Bench::on_memory().await;
    let (queue, lease) = (QueueName::new("default").unwrap(), Duration::from_secs(1));
    let calls = (0..TASKS).map(|_| Fragile {}.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
    broker.register(&queue, &ghost, lease, "{}").await.unwrap();
    let claimed = broker.claim(&queue, &ghost, 1, TASKS).await.unwrap();
    assert_eq!(claimed.grants.len(), TASKS);
    let worker = bench.worker().lease(lease).concurrency(2 * TASKS).task_type::<Fragile>();
    let worker = bench.start(worker);
    for handle in &handles {
        handle.result_within(PATIENCE).await.unwrap();
    }
    worker.stop().await;
    let events = events.lock().unwrap();
    let mut logged: Vec<&str> = events.iter().map(|event| event.get("id")).collect();
    let lines = logged.len();
    logged.sort_unstable();
    logged.dedup();
    assert_eq!(lines, logged.len(), "each task has one line: {logged:?}");
    assert!(lines > 0, "the tasks are held");
    for event in &*events {
        let fields = ["task", "queue", "attempt", "losses"].map(|name| event.get(name));
        assert_eq!(fields, ["fragile", "default", "2", "1"]);
    }
}

#[tokio::test]
async fn a_start_without_redis_logs_no_promise_to_try_again() {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let heard = texts.clone();
    let keep = each_text(move |text| heard.lock().unwrap().push(text.to_owned()));
    let _default = set_default(keep.at(Level::WARN));
    let worker = Worker::builder("unix:///nowhere/redis.sock").quiet().only_named_tasks();
    let worker = worker.task_type::<Double>().build().unwrap();
    let problem =
        timeout(PATIENCE, worker.run_until(pending::<()>())).await.expect("the start gives up");
    assert!(problem.unwrap_err().is_unavailable());
    let is_logged = async || !texts.lock().unwrap().is_empty();
    eventually("the outage is logged", PATIENCE, is_logged).await;
    assert_eq!(*texts.lock().unwrap(), ["no connection to Redis"]);
}
