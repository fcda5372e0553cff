//! The metrics and probes of a worker, beside handlers that block, a Redis that is away, and its
//! end.

use std::{
    net::{SocketAddr, TcpListener},
    time::{Duration, Instant},
};

use crate::common::{Bench, Flaky, Gate, Wait, all_have_ended, one_thread::OneThreadWorker};
use optimus_core::{BoxError, Context, DataKey, Fatal, StatsUnit, Task};
use optimus_testkit::{
    Hold, HttpAnswer, RedisServer, eventually,
    exposition::{Samples, check_with_promtool, read},
    http_get,
};
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

const PATIENCE: Duration = Duration::from_secs(30);

/// A task that dies.
#[derive(Serialize, Deserialize)]
struct Lost {}

impl Task for Lost {
    const NAME: &'static str = "lost";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Err(Fatal::new("nobody finds it").into())
    }
}

/// A task that keeps a thread of the runtime.
#[derive(Serialize, Deserialize)]
struct KeepThread {}

impl Task for KeepThread {
    const NAME: &'static str = "keep_thread";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Hold>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Hold>().unwrap().keep_thread();
        Ok(())
    }
}

/// Returns an address that was free just now.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn with_metrics(worker: WorkerBuilder, address: SocketAddr) -> WorkerBuilder {
    worker.metrics(address.to_string())
}

async fn get(address: SocketAddr, path: &'static str) -> Option<HttpAnswer> {
    spawn_blocking(move || http_get(address, &format!("GET {path}")).ok()).await.unwrap()
}

async fn status(address: SocketAddr, path: &'static str) -> u16 {
    get(address, path).await.map_or(0, |answer| answer.status)
}

async fn metrics(address: SocketAddr) -> Samples {
    read(&get(address, "/metrics").await.expect("the worker answers").body)
}

/// Returns how many attempts at a task ended in this way.
fn ended(seen: &Samples, task: &str, outcome: &str) -> Option<f64> {
    let labels = [("queue", "default"), ("task", task), ("outcome", outcome)];
    seen.value("optimus_attempts_total", &labels)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_of_a_worker_equal_what_the_inspector_says() {
    let (bench, address) = (Bench::on_redis().await, free_address());
    for attempts in [1, 1, 1, 2, 3] {
        let call = Flaky { attempts, panics: false }.call().max_retry(5);
        bench.client.submit(call).await.unwrap();
    }
    bench.client.submit(Lost {}.call()).await.unwrap();
    let worker = bench.worker().concurrency(4).task_type::<Flaky>().task_type::<Lost>();
    let worker = bench.start(with_metrics(worker, address));
    let has_ended = async || {
        let Some(answer) = get(address, "/metrics").await else { return false };
        let seen = read(&answer.body);
        ended(&seen, "flaky", "success") == Some(5.0) && ended(&seen, "lost", "dead") == Some(1.0)
    };
    eventually("all tasks are counted", PATIENCE, has_ended).await;
    let text = get(address, "/metrics").await.unwrap().body;
    check_with_promtool(&text);
    let seen = read(&text);
    assert_eq!(ended(&seen, "flaky", "retry"), Some(3.0));
    let slots = |state| seen.value("optimus_slots", &[("state", state)]).unwrap();
    assert_eq!((slots("busy"), slots("idle"), slots("withheld")), (0.0, 4.0, 0.0));
    let labels = [("queue", "default"), ("task", "flaky")];
    assert_eq!(seen.value("optimus_run_seconds_count", &labels), Some(8.0));
    assert!(seen.value("optimus_claim_turns_total", &[("outcome", "answered")]).unwrap() >= 2.0);
    assert!(seen.value("optimus_lease_left_seconds", &[("queue", "default")]).unwrap() > 0.0);
    assert!(seen.value("optimus_redis_connects_total", &[("connection", "claims")]).unwrap() > 0.0);
    let totals = bench.client.inspector().totals("default").await.unwrap();
    assert_eq!((totals.successes, totals.retries, totals.deaths), (5, 3, 1));
    worker.stop().await;
    let stats = bench.client.inspector().stats("default", StatsUnit::Hour, 2).await.unwrap();
    let flaky = &stats.by_task()["flaky"];
    assert_eq!((flaky.successes, flaky.retries, flaky.run.count()), (5, 3, 8));
    let sum = seen.value("optimus_run_seconds_sum", &labels).unwrap();
    assert!((sum - flaky.run.sum().as_secs_f64()).abs() < 1e-9, "{sum}");
    assert_eq!(status(address, "/livez").await, 0, "the port is closed with the worker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_answer_while_a_handler_blocks_the_only_thread() {
    let (bench, address, hold) = (Bench::on_redis().await, free_address(), Hold::new());
    let worker = bench.worker().data(hold.clone()).task_type::<KeepThread>();
    let worker = OneThreadWorker::start(with_metrics(worker, address));
    bench.client.submit(KeepThread {}.call()).await.unwrap();
    hold.arrivals().wait_for(1).await;
    let age =
        async || metrics(address).await.value("optimus_claim_loop_age_seconds", &[]).unwrap() > 4.0;
    eventually("the metrics show that the claim loop does not run", PATIENCE, age).await;
    for path in ["/livez", "/readyz", "/metrics"] {
        let began = Instant::now();
        assert_eq!(status(address, path).await, 200, "{path}");
        assert!(began.elapsed() < Duration::from_secs(3), "{path}: {:?}", began.elapsed());
    }
    hold.release();
    all_have_ended(&bench).await;
    drop(worker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_redis_is_away_is_alive_and_not_ready() {
    let mut redis = RedisServer::start();
    let (bench, address) = (Bench::at(&redis.url()).await, free_address());
    let worker = bench.worker().task_type::<Lost>();
    let worker = bench.start(with_metrics(worker, address));
    let is = async |expected: u16| status(address, "/readyz").await == expected;
    eventually("it is ready", PATIENCE, async || is(200).await).await;
    // It does not answer, but its connections are open.
    redis.pause();
    eventually("it is not ready", PATIENCE, async || is(503).await).await;
    assert_eq!(status(address, "/livez").await, 200);
    redis.resume();
    eventually("it is ready again", PATIENCE, async || is(200).await).await;
    redis.kill();
    eventually("it is not ready", PATIENCE, async || is(503).await).await;
    let text = get(address, "/readyz").await.unwrap().body;
    assert!(text.contains("Redis"), "{text}");
    assert_eq!(status(address, "/livez").await, 200);
    redis.restart();
    eventually("it is ready again", PATIENCE, async || is(200).await).await;
    let breaks = [("connection", "maintenance")];
    assert!(metrics(address).await.value("optimus_redis_breaks_total", &breaks).unwrap() > 0.0);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_ends_is_alive_and_not_ready_until_its_last_task_has_ended() {
    let (bench, address, gate) = (Bench::on_redis().await, free_address(), Gate::new());
    let worker = bench.worker().data(gate.clone()).task_type::<Wait>();
    let worker = bench.start(with_metrics(worker, address));
    bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    assert_eq!(status(address, "/readyz").await, 200);
    let ending = tokio::spawn(worker.stop());
    let not_ready = async || status(address, "/readyz").await == 503;
    eventually("it is not ready", PATIENCE, not_ready).await;
    assert_eq!(get(address, "/readyz").await.unwrap().body, "the worker ends\n");
    assert_eq!(status(address, "/livez").await, 200);
    let busy = metrics(address).await.value("optimus_slots", &[("state", "busy")]);
    assert_eq!(busy, Some(1.0));
    gate.open.hit();
    ending.await.unwrap();
    assert_eq!(status(address, "/livez").await, 0);
}

#[tokio::test]
async fn a_port_in_use_ends_the_start_before_the_worker_is_registered() {
    let bench = Bench::on_redis().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let worker = with_metrics(bench.worker().task_type::<Lost>(), address).build().unwrap();
    let problem = worker.run_until(async {}).await.unwrap_err();
    let text = problem.to_string();
    assert!(problem.is_invalid() && text.contains(&address.to_string()), "{text}");
    assert!(text.contains("no other program uses"), "{text}");
    assert!(bench.client.inspector().workers("default").await.unwrap().is_empty());
    let wrong = bench.worker().task_type::<Lost>().metrics("localhost").build();
    assert!(wrong.err().unwrap().to_string().contains("127.0.0.1:9000"));
}
