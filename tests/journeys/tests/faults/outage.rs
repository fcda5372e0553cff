//! Redis is down for longer than a lease. It is killed, and started again from its append-only
//! file.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::Bench;
use optimus_core::{
    BoxError, Context, DataKey, QueueName, Task, TaskId,
    broker::{Broker, Endpoint},
};
use optimus_testkit::{EachEvent, LogEvent, RedisServer, Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tracing::{Level, subscriber::set_default};

const LEASE: Duration = Duration::from_secs(1);
const OUTAGE: Duration = Duration::from_secs(4);

/// Counts its executions. A long one runs during the whole outage.
#[derive(Serialize, Deserialize)]
struct Count {
    long: bool,
}

#[derive(Clone, Default)]
struct Log {
    runs: Arc<Mutex<HashMap<TaskId, usize>>>,
    long_began: Signal,
    outage_over: Signal,
}

impl Task for Count {
    const NAME: &'static str = "count";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Log>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let log: Log = ctx.data().unwrap();
        *log.runs.lock().unwrap().entry(ctx.id().clone()).or_default() += 1;
        if self.long {
            log.long_began.hit();
            log.outage_over.wait_for(1).await;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_longer_than_the_lease_loses_nothing_and_runs_nothing_twice() {
    let mut redis = RedisServer::builder().appendonly_always().start();
    let bench = Bench::at(&redis.url()).await;
    let log = Log::default();
    let worker = || bench.start(bench.worker().lease(LEASE).task_type::<Count>().data(log.clone()));
    let workers = [worker(), worker()];
    let (inspector, queue) = (bench.client.inspector(), QueueName::new("default").unwrap());
    let both = async || inspector.workers(&queue).await.unwrap().len() == 2;
    eventually("both workers have started", Duration::from_secs(20), both).await;
    let calls = (0..10).map(|_| Count { long: true }.call());
    let lasting = bench.client.submit_all(calls).await.unwrap();
    log.long_began.wait_for(10).await;

    let client = bench.client.clone();
    let load = tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        for _ in 0..300 {
            acknowledged.push(client.submit(Count { long: false }.call()).await.unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        acknowledged
    });
    redis.kill();
    // This is the outage. The test must wait here so that leases end.
    tokio::time::sleep(OUTAGE).await;
    // These results are produced while Redis is down, and must count when it runs again.
    log.outage_over.hit();
    redis.restart();

    let short = load.await.unwrap();
    assert_eq!(short.len(), 300);
    for handle in lasting.iter().chain(&short) {
        handle.result_within(Duration::from_secs(30)).await.unwrap();
    }
    let runs = log.runs.lock().unwrap().clone();
    assert_eq!(runs.len(), 310);
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "tasks that ran more than once: {twice:?}");
    for worker in workers {
        worker.stop().await;
    }
}

/// While it loads, a server refuses every call. Each call is sent again after its own wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_restarts_with_data_leaves_no_submit_unknown() {
    const TASKS: usize = 60_000;
    // The writes of a killed process remain, synced or not.
    let mut redis = RedisServer::builder()
        .arg("--appendonly", "yes")
        .arg("--appendfsync", "no")
        .arg("--key-load-delay", "1000")
        .arg("--loading-process-events-interval-bytes", "1024")
        .start();
    let bench = Bench::at(&redis.url()).await;
    let mut raw = bench.raw().await;
    let fill: &[u8] = b"for key = 1, 3000 do redis.call('SET', 'other:' .. key, 'data') end";
    raw.run_words(&[b"EVAL", fill, b"0"]).await;
    let client = bench.client.clone();
    let submitting = tokio::spawn(async move {
        client.submit_all((0..TASKS).map(|_| Count { long: false }.call())).await
    });
    let queue = QueueName::new("default").unwrap();
    let inspector = bench.client.inspector();
    let stored = async || inspector.counts(&queue).await.map_or(0, |counts| counts.ready);
    eventually("some tasks are stored", Duration::from_secs(20), async || stored().await > 4_000)
        .await;
    assert!(!submitting.is_finished(), "the other tasks are submitted during the restart");
    // The server loads for three seconds.
    let restarting = tokio::task::spawn_blocking(move || {
        redis.restart();
        redis
    });
    let handles = submitting.await.unwrap().unwrap();
    assert_eq!(handles.len(), TASKS);
    assert_eq!(stored().await, TASKS as u64, "each task is stored once");
    drop(restarting.await.unwrap());
}

/// Otherwise a heartbeat would wait for longer than a short lease although Redis runs again.
#[tokio::test]
async fn a_reconnect_does_not_wait_again() {
    let mut redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let broker = bench.client.broker().separate("test");
    broker.ping().await.unwrap();
    redis.kill();
    for _ in 0..10 {
        broker.within(Duration::ZERO).ping().await.unwrap_err();
    }
    redis.restart();
    // With this number of failures, a new wait would last at least one and a half seconds.
    let restarted = Instant::now();
    broker.reconnect();
    broker.ping().await.unwrap();
    assert!(restarted.elapsed() < Duration::from_secs(1), "{:?}", restarted.elapsed());
}

#[tokio::test]
async fn a_server_that_takes_no_connection_is_tried_less_and_less_often() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let refusing = tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
            *count.lock().unwrap() += 1;
        }
    });
    let broker = Broker::new(Endpoint::parse(&url).unwrap(), "test", "test");
    broker.within(Duration::from_secs(1)).ping().await.unwrap_err();
    refusing.abort();
    // The waits begin at 25 ms and double, and each is at least half of that, which is 787 ms for
    // the first six. One more connection checks whether the server speaks TLS.
    let asked = *asked.lock().unwrap();
    assert!((2..=9).contains(&asked), "the client connected {asked} times in a second");
}

/// During a rotation of credentials, the server and its clients have different ones for a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_were_accepted_once_are_tried_until_they_are_accepted_again() {
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let heard = refusals.clone();
    let keep = move |event: LogEvent| {
        if event.get("error").contains("Password authentication failed") {
            heard.lock().unwrap().push(event.get("role").to_owned());
        }
    };
    let _default = set_default(EachEvent::new(keep).of("optimus").at(Level::WARN));
    let redis = RedisServer::builder().tcp().password("sesame").start();
    let bench = Bench::at(&redis.url()).await;
    let log = Log::default();
    let worker = bench.start(bench.worker().task_type::<Count>().data(log.clone()));
    let mut admin = redis.admin().await;
    let mut change = async |password: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg(&["SET", "requirepass", password]);
        let () = set.query_async(&mut admin).await.unwrap();
        let mut kill = redis::cmd("CLIENT");
        kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
        kill.query_async::<usize>(&mut admin).await.unwrap()
    };
    let first = bench.client.submit(Count { long: false }.call()).await.unwrap();
    first.result().await.unwrap();

    assert!(change("pumpkin").await > 1, "client and worker lose their connections");
    let submit = tokio::spawn({
        let client = bench.client.clone();
        async move { client.submit(Count { long: false }.call()).await }
    });
    let queues = async || bench.client.inspector().queues().await;
    // A call may lose its connection once more, and then tries again for as long as before.
    let mut problem = None;
    eventually("a call fails", 5 * OUTAGE, async || {
        problem = queues().await.err();
        problem.is_some()
    })
    .await;
    assert!(problem.unwrap().is_unavailable());
    let is_logged = async || refusals.lock().unwrap().iter().any(|role| role == "client");
    eventually("the log says that the password is refused", 5 * OUTAGE, is_logged).await;
    change("sesame").await;

    let second = submit.await.unwrap().unwrap();
    second.result().await.unwrap();
    worker.stop().await;
    assert_eq!(log.runs.lock().unwrap()[second.id()], 1);
    let mut logged = refusals.lock().unwrap().clone();
    let lines = logged.len();
    logged.sort_unstable();
    logged.dedup();
    assert_eq!(lines, logged.len(), "each connection logs a reason once: {logged:?}");
}

/// A supervisor does not wait longer than this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_many_queues_ends_within_10_s_of_its_grace_while_redis_is_away() {
    let mut redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let queues: Vec<String> = (0..60).map(|number| format!("queue{number}")).collect();
    let builder = bench.worker().queues(&queues).shutdown_grace(Duration::ZERO);
    let worker = bench.start(builder.task_type::<Count>().data(Log::default()));
    let (inspector, last) = (bench.client.inspector(), QueueName::new("queue59").unwrap());
    let registered = async || !inspector.workers(&last).await.unwrap().is_empty();
    eventually("the worker has started", Duration::from_secs(20), registered).await;
    redis.kill();
    let ended = tokio::time::timeout(Duration::from_secs(10), worker.stop()).await;
    ended.expect("the worker has ended");
}
