//! Invalid input is refused before it does harm, with a typed error that names the remedy.

use std::time::{Duration, Instant};

use crate::common::{Bench, Double, Gate, Wait};
use optimus_core::{
    Backoff, Call, Client, Due, Error, Limit, QueueName, Task, TaskId, TaskOptions, TaskState,
};
use optimus_testkit::{RedisServer, eventually};
use optimus_worker::{Worker, WorkerBuilder};

const SOON: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);

const NO_QUEUE_NAMES: [&str; 9] = ["", " ", "a b", "{a}", "a:b", "a/b", "a*", "ä", "line\nbreak"];

idle_task!(Namesake, "double", TaskOptions::new());
idle_task!(Nameless, "two words", TaskOptions::new());
idle_task!(Timeless, "timeless", TaskOptions::new().timeout(Duration::ZERO));
idle_task!(Misplaced, "misplaced", TaskOptions::new().queue("{a}"));
idle_task!(Urgent, "urgent", TaskOptions::new().priority(101));
idle_task!(Unlosable, "unlosable", TaskOptions::new().max_losses(0));
idle_task!(Restless, "restless", TaskOptions::new().backoff(fixed(Duration::ZERO)));

const fn fixed(wait: Duration) -> Backoff {
    Backoff::Fixed { wait, jitter: 0.0 }
}

fn double() -> Call<Double> {
    Double { number: 21 }.call()
}

/// Returns the error of a worker that refuses its settings and so never connects.
fn offline() -> WorkerBuilder {
    Worker::builder("redis://127.0.0.1:1/").quiet().only_named_tasks()
}

fn refused(builder: WorkerBuilder) -> Error {
    let problem = builder.build().expect_err("the worker refuses its settings");
    assert!(problem.is_invalid(), "{problem}");
    problem
}

async fn start_error(builder: WorkerBuilder) -> Error {
    let worker = builder.task_type::<Double>().build().unwrap();
    let begun = Instant::now();
    let problem = worker.run_until(std::future::pending::<()>()).await.unwrap_err();
    assert!(begun.elapsed() < SECOND, "only after {:?}", begun.elapsed());
    problem
}

#[tokio::test]
async fn a_url_of_another_scheme_is_refused_by_client_and_worker() {
    for url in ["", "localhost:6379", "http://localhost", "amqp://me:secret@host"] {
        let by_client = Client::connect(url).await.err().unwrap();
        let builder = Worker::builder(url).quiet().only_named_tasks();
        let by_worker = refused(builder.task_type::<Double>());
        for problem in [by_client, by_worker] {
            assert!(problem.is_invalid() && problem.to_string().contains("redis://"), "{problem}");
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
    }
}

#[tokio::test]
async fn without_a_server_client_and_worker_fail_at_once() {
    for url in ["redis://127.0.0.1:1/", "unix:///nowhere/redis.sock"] {
        let begun = Instant::now();
        let by_client = Client::connect(url).await.err().unwrap();
        assert!(begun.elapsed() < SECOND, "{url}: only after {:?}", begun.elapsed());
        let by_worker = start_error(Worker::builder(url).quiet().only_named_tasks()).await;
        for problem in [by_client, by_worker] {
            assert!(problem.is_unavailable(), "{url}: {problem}");
        }
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_no_outage_and_is_not_tried_again() {
    let server = RedisServer::builder().tcp().password("sesame").start();
    let right = server.url();
    Client::connect(&right).await.unwrap();
    for url in [right.replace("sesame", "pumpkin"), right.replace(":sesame@", "")] {
        let begun = Instant::now();
        let by_client = Client::connect(&url).await.err().unwrap();
        assert!(begun.elapsed() < SECOND, "only after {:?}", begun.elapsed());
        let by_worker = start_error(Worker::builder(&url).quiet().only_named_tasks()).await;
        for problem in [by_client, by_worker] {
            assert!(problem.is_unauthorized(), "{problem}");
            assert!(!problem.to_string().contains("pumpkin"), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_namespace_that_could_escape_its_keys_is_refused() {
    for namespace in ["", "a b", "{a}", "a:b"] {
        let bench = Client::builder("memory://names").namespace(namespace).connect().await;
        assert!(bench.err().unwrap().is_invalid(), "{namespace:?} by the client");
        let worker = offline().namespace(namespace).task_type::<Double>().build();
        assert!(worker.is_err_and(|problem| problem.is_invalid()), "{namespace:?} by the worker");
    }
}

#[tokio::test]
async fn a_queue_name_that_could_escape_its_key_is_refused_at_submit() {
    let bench = Bench::on_memory().await;
    let long = "q".repeat(129);
    for name in NO_QUEUE_NAMES.into_iter().chain([long.as_str()]) {
        let problem = bench.client.submit(double().queue(name)).await.unwrap_err();
        assert!(problem.is_invalid(), "{name:?}: {problem}");
        assert!(problem.to_string().contains("double"), "the error names the task: {problem}");
    }
    assert!(bench.client.inspector().queues().await.unwrap().is_empty());
}

#[test]
fn a_queue_name_that_could_escape_its_key_is_refused_when_a_worker_is_built() {
    for name in NO_QUEUE_NAMES {
        let worker = || offline().task_type::<Double>();
        refused(worker().queues([name]));
        refused(worker().strict(["fine", name]));
        refused(worker().weighted([(name, 2), ("fine", 1)]));
    }
}

#[test]
fn an_invalid_queue_name_is_refused_as_a_queue_name() {
    let by_itself = QueueName::new("bad queue").unwrap_err().to_string();
    let by_worker = refused(offline().task_type::<Double>().queues(["bad queue"])).to_string();
    for problem in [by_itself, by_worker] {
        assert!(problem.starts_with("queue name: \"bad queue\" contains ' '"), "{problem}");
    }
    let problem = "bad queue/01890a5d-ac96-774b-bcce-b302099a8057".parse::<TaskId>().unwrap_err();
    assert!(problem.to_string().starts_with("queue name: "), "{problem}");
}

#[test]
fn missing_data_is_refused_with_the_remedies() {
    let problem = refused(offline().task_type::<Wait>()).to_string();
    for remedy in [".data(…)", ".only_named_tasks()"] {
        assert!(problem.contains(remedy), "{problem}");
    }
}

#[test]
fn a_queue_that_is_served_twice_is_refused() {
    let problem = refused(offline().task_type::<Double>().queues(["mail", "mail"]));
    assert!(problem.to_string().contains("mail"), "{problem}");
}

#[test]
fn durations_of_zero_that_would_mean_never_or_always_are_refused_at_submit() {
    let calls = [
        ("timeout", double().timeout(Duration::ZERO)),
        ("expires_in", double().expires_in(Duration::ZERO)),
        ("biz_window", double().biz_id("b").biz_window(Duration::ZERO)),
        ("backoff", double().backoff(fixed(Duration::ZERO))),
    ];
    for (option, call) in calls {
        let problem = call.erase().unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains(option), "{problem}");
    }
}

#[test]
fn durations_that_are_too_long_and_wrong_numbers_are_refused_at_submit() {
    let calls = [
        ("timeout", double().timeout(Duration::MAX)),
        ("expires_in", double().expires_in(Duration::MAX)),
        ("biz_window", double().biz_id("b").biz_window(Duration::MAX)),
        ("result_ttl", double().result_ttl(Duration::MAX)),
        ("priority", double().priority(101)),
        ("priority", double().priority(i8::MIN)),
        ("jitter", double().backoff(Backoff::Fixed { wait: SECOND, jitter: 1.5 })),
        ("jitter", double().backoff(Backoff::Fixed { wait: SECOND, jitter: f64::NAN })),
    ];
    for (option, call) in calls {
        let problem = call.erase().unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains(option), "{problem}");
    }
}

#[tokio::test]
async fn a_biz_id_that_is_empty_or_endless_is_refused() {
    let bench = Bench::on_memory().await;
    for biz_id in [String::new(), "b".repeat(513)] {
        let problem = bench.client.submit(double().biz_id(biz_id)).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("biz id"), "{problem}");
    }
}

#[test]
fn two_tasks_of_one_name_are_refused_and_both_are_named() {
    let problem = refused(offline().task_type::<Double>().task_type::<Namesake>()).to_string();
    assert!(problem.contains("Double") && problem.contains("Namesake"), "{problem}");
    assert!(offline().task_type::<Double>().task_type::<Double>().build().is_ok());
}

#[test]
fn missing_data_is_refused_and_its_type_is_named() {
    let problem = refused(offline().task_type::<Wait>()).to_string();
    assert!(problem.contains("Gate") && problem.contains("wait"), "{problem}");
    assert!(offline().task_type::<Wait>().data(Gate::new()).build().is_ok());
}

#[tokio::test]
async fn a_definition_with_invalid_options_is_refused_when_the_worker_is_built() {
    for (builder, option) in [
        (offline().task_type::<Nameless>(), "two words"),
        (offline().task_type::<Timeless>(), "timeout"),
        (offline().task_type::<Misplaced>(), "queue"),
        (offline().task_type::<Urgent>(), "priority"),
        (offline().task_type::<Unlosable>(), "max_losses"),
        (offline().task_type::<Restless>(), "backoff"),
        (offline(), "no task"),
    ] {
        let problem = refused(builder).to_string();
        assert!(problem.contains(option), "{problem}");
    }
    let problem = Bench::on_memory().await.client.submit(Nameless {}.call()).await.unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("two words"), "{problem}");
}

#[test]
fn a_worker_that_could_never_run_anything_is_refused() {
    let worker = || offline().task_type::<Double>();
    for (builder, setting) in [
        (worker().concurrency(0), "concurrency"),
        (worker().concurrency(usize::MAX), "concurrency"),
        (worker().lease(Duration::from_millis(499)), "lease"),
        (worker().lease(Duration::MAX), "lease"),
        (worker().poll(Duration::ZERO), "poll"),
        (worker().poll(Duration::from_micros(9_999)), "poll"),
        (worker().poll(Duration::MAX), "poll"),
        (worker().weighted([("mail", 0)]), "weight"),
        (Worker::builder("redis://host:port"), "URL"),
        (Worker::builder("redis://host/db"), "URL"),
    ] {
        let problem = refused(builder).to_string();
        assert!(problem.contains(setting), "{problem}");
    }
}

#[tokio::test]
async fn a_client_that_could_never_submit_anything_is_refused() {
    let builder = Client::builder("memory://no-time").submit_timeout(Duration::ZERO);
    let problem = builder.connect().await.err().unwrap();
    assert!(problem.is_invalid() && problem.to_string().contains("timeout"), "{problem}");
}

on_both! {
    async fn with_no_retries_the_first_failure_is_dead(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<crate::common::Flaky>());
        let call = crate::common::Flaky { attempts: 2, panics: false }.call().max_retry(0);
        let handle = bench.client.submit(call).await.unwrap();
        assert!(handle.result_within(SOON).await.unwrap_err().is_dead());
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!((task.state, task.failures, task.errors.len()), (TaskState::Dead, 1, 1));
        worker.stop().await;
    }

    async fn a_wait_without_a_limit_is_a_setting_that_works(bench: Bench) {
        let client = bench.client_builder().submit_timeout(Duration::MAX).connect().await.unwrap();
        let builder = bench.worker().poll(Duration::from_secs(1)).misfit_grace(Duration::MAX);
        let worker = bench.start(builder.shutdown_grace(Duration::MAX).task_type::<Double>());
        let handle = client.submit(double()).await.unwrap();
        assert_eq!(handle.result_within(Duration::MAX).await.unwrap(), 42);
        let door = client.limit("door").wait_at_most(Duration::MAX);
        door.set(Limit::new().max_working(1)).await.unwrap();
        door.acquire().await.unwrap().give_back().await;
        worker.stop().await;
    }

    async fn a_delay_without_end_harms_no_other_task_of_the_queue(bench: Bench) {
        let endless = bench.client.submit(double().due(Due::In(Duration::MAX))).await;
        let worker = bench.start(bench.worker().task_type::<Double>());
        let begun = Instant::now();
        for _ in 0..20 {
            let handle = bench.client.submit(double()).await.unwrap();
            assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
        }
        assert!(begun.elapsed() < 2 * SECOND, "20 tasks took {:?}", begun.elapsed());
        match endless {
            Ok(endless) => assert_eq!(endless.status().await.unwrap(), TaskState::Delayed),
            Err(problem) => assert!(problem.is_invalid(), "{problem}"),
        }
        worker.stop().await;
    }
}

/// A key of a queue, and a call whose submit uses this key.
type Case = (&'static str, fn() -> Call<Double>);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_of_a_client_whose_first_submit_was_refused_can_be_purged() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    raw.run("CONFIG SET maxmemory 1").await;
    assert!(bench.client.submit(double()).await.unwrap_err().is_full());
    raw.run("CONFIG SET maxmemory 0").await;
    bench.client.submit(double()).await.unwrap();
    let known = raw.run(&format!("ZRANGE {} 0 -1", bench.key("default", "ledgers"))).await;
    assert_eq!(known.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_that_meets_a_key_of_another_type_is_rejected_and_leaves_nothing() {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    let ranked = || double().priority(5);
    let later = || double().due(Due::In(SECOND));
    let cases: [Case; 7] = [
        ("tasks", double),
        ("ready", double),
        ("wake", double),
        ("ledgers", double),
        ("priority", ranked),
        ("priorities", ranked),
        ("delayed", later),
    ];
    for (at, (name, call)) in cases.into_iter().enumerate() {
        let queue = format!("q{at}");
        let key = bench.key(&queue, name);
        raw.run(&format!("SET {key} foreign")).await;
        let problem = bench.client.submit(call().queue(&queue)).await.unwrap_err();
        assert!(problem.is_rejected(), "{name}: {problem}");
        assert_eq!(raw.run(&format!("GET {key}")).await, [b"foreign"], "{name}");
        let left = raw.run(&format!("KEYS {}", bench.key(&queue, "*"))).await;
        assert_eq!(left, [key.as_bytes()], "{name}: a refused submit has changed something");
        raw.run(&format!("DEL {key}")).await;
        bench.client.submit(call().queue(&queue)).await.unwrap();
    }
}

/// Checks that a worker of two queues continues when a key of one of them has another type.
async fn continues_with_a_foreign(name: &str, build: fn(WorkerBuilder) -> WorkerBuilder) {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    let worker = bench.start(build(bench.worker().task_type::<Double>()));
    for queue in ["broken", "sound"] {
        let handle = bench.client.submit(double().queue(queue)).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    }
    let key = bench.key("broken", name);
    raw.run(&format!("DEL {key}")).await;
    raw.run(&format!("SET {key} foreign")).await;
    for _ in 0..3 {
        let handle = bench.client.submit(double().queue("sound")).await.unwrap();
        let done = handle.result_within(Duration::from_secs(8)).await;
        assert!(done.is_ok_and(|n| n == 42), "the other queue stops because of a foreign {name}");
    }
    raw.run(&format!("DEL {key}")).await;
    let handle = bench.client.submit(double().queue("broken")).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42, "{name}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_key_of_another_type_in_one_queue_continues_with_the_others() {
    let build: fn(WorkerBuilder) -> WorkerBuilder = |w| w.queues(["broken", "sound"]);
    let names = ["ready", "delayed", "tasks", "wake"];
    let [a, b, c, d] = names.map(|name| continues_with_a_foreign(name, build));
    tokio::join!(a, b, c, d);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_queue_does_not_keep_the_only_slot_from_later_queues() {
    continues_with_a_foreign("ready", |w| w.strict(["broken", "sound"]).concurrency(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_evict_tasks_causes_a_warning_and_is_served() {
    let server = RedisServer::builder().arg("--maxmemory-policy", "allkeys-lru").start();
    let bench = Bench::at(&server.url()).await;
    let warnings = bench.client.inspector().server().await.unwrap().warnings().join("\n");
    assert!(warnings.contains("allkeys-lru") && warnings.contains("noeviction"), "{warnings}");
    let worker = bench.start(bench.worker().task_type::<Double>());
    let handle = bench.client.submit(double()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_queue_is_not_an_error() {
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().task_type::<Double>().queues(["nobody-submits"]));
    let queue = QueueName::new("nobody-submits").unwrap();
    let inspector = bench.client.inspector();
    let seen = async || !inspector.workers(&queue).await.unwrap().is_empty();
    eventually("the worker serves the queue", SOON, seen).await;
    assert_eq!(inspector.counts(&queue).await.unwrap(), optimus_core::Counts::default());
    worker.stop().await;
}
