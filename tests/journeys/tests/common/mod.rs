//! A client and workers on a separate store, and tasks for tests.
#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub mod blocking_task;
pub mod completions;
pub mod digests;
pub mod log;
pub mod one_thread;
pub mod orders;
mod raw;
pub mod rounds;
pub mod rows;
pub mod server_pair;
pub mod steps;
pub mod sums;

use std::{env, path::Path, time::Duration};

pub use raw::Raw;

use optimus_core::{
    BoxError, Client, ClientBuilder, Context, Error, QueueName, Reason, Task, TaskDetails,
    TaskHandle, TaskId, TaskOptions,
};
use optimus_testkit::{
    Proc, ProcBuilder, SharedRedis, Signal, eventually, namespace, shared_redis,
};
use optimus_worker::{Worker, WorkerBuilder};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{sync::oneshot, task::JoinHandle};

/// The environment variable with which a child process finds its bench.
const CHILD_URL: &str = "CHILD_URL";
const CHILD_NAMESPACE: &str = "CHILD_NAMESPACE";

/// The store, the namespace and the client of a test.
pub enum Store {
    Memory,
    Redis(Box<SharedRedis>),
    At(String),
}

pub struct Bench {
    store: Store,
    namespace: String,
    pub client: Client,
}

impl Bench {
    pub async fn on_memory() -> Self {
        Self::new(Store::Memory).await
    }

    pub async fn on_redis() -> Self {
        Self::new(Store::Redis(Box::new(shared_redis()))).await
    }

    pub async fn at(url: &str) -> Self {
        Self::new(Store::At(url.to_owned())).await
    }

    /// Returns a bench in the store and namespace of another bench, which may be in another
    /// process.
    pub async fn shared(url: &str, namespace: &str) -> Self {
        Self::in_namespace(Store::At(url.to_owned()), namespace.to_owned()).await
    }

    async fn new(store: Store) -> Self {
        Self::in_namespace(store, namespace()).await
    }

    async fn in_namespace(store: Store, namespace: String) -> Self {
        let url = url(&store, &namespace);
        let client = Client::builder(&url).namespace(&namespace).connect().await.unwrap();
        Self { store, namespace, client }
    }

    pub fn url(&self) -> String {
        url(&self.store, &self.namespace)
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Connects another client of the same system.
    pub fn client_builder(&self) -> ClientBuilder {
        Client::builder(&self.url()).namespace(&self.namespace)
    }

    /// Starts this test binary as another process, which runs one of its ignored tests with this
    /// bench.
    pub fn child(&self, test: &str) -> ProcBuilder {
        self.child_of(env::current_exe().unwrap(), test)
    }

    /// Returns a process that runs a test of another test program, on the same store.
    pub fn child_of(&self, program: impl AsRef<Path>, test: &str) -> ProcBuilder {
        Proc::program(program)
            .arg(test)
            .arg("--exact")
            .arg("--ignored")
            .arg("--nocapture")
            .env(CHILD_URL, self.url())
            .env(CHILD_NAMESPACE, self.namespace())
    }

    /// Returns the bench of the process that started this one.
    pub async fn of_parent() -> Self {
        let [url, namespace] = [CHILD_URL, CHILD_NAMESPACE].map(|name| env::var(name).unwrap());
        Self::shared(&url, &namespace).await
    }

    /// Returns a connection for plain commands to the same server.
    pub async fn raw(&self) -> Raw {
        Raw::connect(&self.url()).await
    }

    /// Returns the full name of a key of a queue.
    pub fn key(&self, queue: &str, name: &str) -> String {
        format!("{{{}:{queue}:0}}:{name}", self.namespace)
    }

    /// Returns a worker for the tests' tasks, with a short lease and poll interval.
    pub fn worker(&self) -> WorkerBuilder {
        Worker::builder(&self.url())
            .namespace(&self.namespace)
            .quiet()
            .lease(Duration::from_secs(2))
            .poll(Duration::from_secs(1))
            .only_named_tasks()
    }

    #[expect(
        clippy::unused_self,
        reason = "the reader of a test sees that the bench starts the worker"
    )]
    pub fn start(&self, builder: WorkerBuilder) -> Running {
        let worker = builder.build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run_until(async move { drop(stopped.await) }));
        Running { stop: Some(stop), task }
    }
}

fn url(store: &Store, namespace: &str) -> String {
    match store {
        Store::Memory => format!("memory://{namespace}"),
        Store::Redis(redis) => redis.url().to_owned(),
        Store::At(url) => url.clone(),
    }
}

pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// Shuts the worker down, and waits until it has ended.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap().unwrap();
    }
}

/// Returns a task as an inspector shows it.
pub async fn view(bench: &Bench, id: &TaskId) -> TaskDetails {
    bench.client.inspector().get(id).await.unwrap().expect("the task is known")
}

/// Waits until no task of the default queue waits or runs.
pub async fn all_have_ended(bench: &Bench) {
    let (inspector, queue) = (bench.client.inspector(), QueueName::new("default").unwrap());
    let ended = async || {
        let counts = inspector.counts(&queue).await.unwrap();
        counts.ready + counts.working == 0
    };
    eventually("all tasks have ended", Duration::from_secs(60), ended).await;
}

/// Returns the handles of 5,000 tasks that have succeeded. Each task doubles its number, from 0 on.
pub async fn thousands_that_have_ended(bench: &Bench) -> Vec<TaskHandle<i64>> {
    let calls = (0..5_000).map(|number| Double { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    let worker = bench.start(bench.worker().task_type::<Double>().concurrency(256));
    all_have_ended(bench).await;
    worker.stop().await;
    handles
}

/// Returns how many scripts the server has run.
pub async fn script_calls(raw: &mut Raw) -> u64 {
    let stats = String::from_utf8(raw.run("INFO commandstats").await.remove(0)).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.unwrap().split(',').next().unwrap().parse().unwrap()
}

/// Waits until the task is dead, and checks the reason.
pub async fn died_of<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>, reason: Reason) {
    let problem = handle.result_within(Duration::from_secs(20)).await.err().expect("it dies");
    assert!(problem.is_dead(), "{problem}");
    assert_eq!(problem.attempt_error().expect("why").reason, reason, "{problem}");
}

/// Runs each test on the in-process store and on a real Redis.
#[macro_export]
macro_rules! on_both {
    ($(async fn $name:ident($bench:ident: Bench) $body:block)*) => {
        $(
            mod $name {
                use super::*;

                async fn body($bench: Bench) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn memory() {
                    body(Bench::on_memory().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn redis() {
                    body(Bench::on_redis().await).await;
                }
            }
        )*
    };
}

/// Returns a task with the given name and options that does nothing.
#[macro_export]
macro_rules! idle_task {
    ($type:ident, $name:literal, $options:expr) => {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct $type {}

        impl optimus_core::Task for $type {
            const NAME: &'static str = $name;
            type Output = ();

            fn options() -> optimus_core::TaskOptions {
                $options
            }

            async fn run(self, _: optimus_core::Context) -> Result<(), optimus_core::BoxError> {
                Ok(())
            }
        }
    };
}

/// Doubles a number.
#[derive(Serialize, Deserialize)]
pub struct Double {
    pub number: i64,
}

impl Task for Double {
    const NAME: &'static str = "double";
    type Output = i64;

    async fn run(self, _: Context) -> Result<i64, BoxError> {
        Ok(self.number * 2)
    }
}

/// A task that fails until its `attempts`th attempt. It is retried at once.
#[derive(Serialize, Deserialize)]
pub struct Flaky {
    pub attempts: u32,
    pub panics: bool,
}

impl Task for Flaky {
    const NAME: &'static str = "flaky";
    type Output = u32;

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(20);
        TaskOptions::new().backoff(optimus_core::Backoff::Fixed { wait, jitter: 0.0 })
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        if ctx.attempt() < self.attempts {
            assert!(!self.panics, "asked to panic");
            return Err(format!("attempt {} was asked to fail", ctx.attempt()).into());
        }
        Ok(ctx.attempt())
    }
}

/// A task that signals that it has begun, then waits for the gate or for a request to stop.
#[derive(Serialize, Deserialize)]
pub struct Wait {}

#[derive(Clone)]
pub struct Gate {
    pub began: Signal,
    pub open: Signal,
}

impl Gate {
    pub fn new() -> Self {
        Self { began: Signal::new(), open: Signal::new() }
    }
}

impl Task for Wait {
    const NAME: &'static str = "wait";
    type Output = ();

    fn required_data() -> Vec<optimus_core::DataKey> {
        vec![optimus_core::DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let gate: Gate = ctx.data().unwrap();
        gate.began.hit();
        tokio::select! {
            () = gate.open.wait_for(1) => Ok(()),
            () = ctx.cancelled() => Err("asked to stop".into()),
        }
    }
}
