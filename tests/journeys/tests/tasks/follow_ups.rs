//! Handlers that submit tasks. The tasks go to the store of their worker and not to that of the
//! installed client.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::common::{Bench, Double, Running};
use optimus_core::{BoxError, Context, Task, TaskHandle};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

const PATIENCE: Duration = Duration::from_secs(20);

/// The place from which a handler submits the next task.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum From {
    Async,
    Blocking,
    /// On a separate thread with its own runtime, which ends.
    OwnRuntime,
    Spawned,
}

/// A task that submits another task of its kind until none is left. It returns how many tasks
/// followed.
#[derive(Serialize, Deserialize)]
struct Chain {
    left: u32,
    from: From,
}

impl Task for Chain {
    const NAME: &'static str = "chain";
    type Output = u32;

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        ctx.data::<Ran>()
            .expect("each worker provides this data")
            .0
            .fetch_add(1, Ordering::Relaxed);
        let Some(left) = self.left.checked_sub(1) else { return Ok(0) };
        let call = Self { left, from: self.from }.call();
        let next: TaskHandle<u32> = match self.from {
            From::Async => call.perform_async().await?,
            From::Blocking => {
                ctx.run_blocking(|| Handle::current().block_on(call.perform_async())).await?
            }
            From::OwnRuntime => {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                ctx.run_blocking(move || runtime.block_on(call.perform_async())).await?
            }
            From::Spawned => {
                let ctx = ctx.clone();
                tokio::spawn(async move { ctx.client()?.submit(call).await }).await??
            }
        };
        Ok(next.result_within(PATIENCE).await? + 1)
    }
}

/// The number of tasks that have run on a worker.
#[derive(Clone, Default)]
struct Ran(Arc<AtomicU32>);

fn start(bench: &Bench) -> (Running, Ran) {
    let ran = Ran::default();
    let worker = bench.worker().data(ran.clone()).task_type::<Chain>();
    (bench.start(worker), ran)
}

async fn follow(bench: &Bench, from: From) {
    let (worker, ran) = start(bench);
    let handle = bench.client.submit(Chain { left: 2, from }.call()).await.unwrap();
    assert_eq!(handle.result_within(PATIENCE).await.unwrap(), 2, "{from:?}");
    assert_eq!(ran.0.load(Ordering::Relaxed), 3, "{from:?}");
    worker.stop().await;
}

#[tokio::test]
async fn each_submit_of_a_handler_goes_to_the_store_of_its_worker() {
    for from in [From::Async, From::Blocking, From::OwnRuntime, From::Spawned] {
        follow(&Bench::on_memory().await, from).await;
    }
    follow(&Bench::on_redis().await, From::Async).await;
}

/// A task that submits a task whose arguments are twice as long.
#[derive(Serialize, Deserialize)]
struct Forward {
    text: String,
}

impl Task for Forward {
    const NAME: &'static str = "forward";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        if self.text.len() < 100 {
            let text = self.text.repeat(2);
            Self { text }.call().perform_async().await?;
        }
        Ok(())
    }
}

#[test]
fn an_installed_client_counts_outside_of_handlers_and_in_those_of_its_own_store() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let call = || Double { number: 4 }.call();
    let first = runtime();
    let other = first.block_on(async {
        let problem = call().perform_async().await.unwrap_err();
        assert!(problem.to_string().contains("no client is installed"), "{problem}");
        // The client is recognised by its limit.
        let (other, bench) = (Bench::on_memory().await, Bench::on_memory().await);
        other.client_builder().payload_limit(100).connect().await.unwrap().install();
        let outside = call().perform_async().await.unwrap();
        assert!(other.client.inspector().get(outside.id()).await.unwrap().is_some());
        for (bench, dies) in [(&bench, false), (&other, true)] {
            let worker = bench.start(bench.worker().task_type::<Forward>());
            let forward = Forward { text: "x".repeat(60) }.call().max_retry(0);
            let handle = bench.client.submit(forward).await.unwrap();
            match handle.result_within(PATIENCE).await {
                Ok(()) => assert!(!dies),
                Err(problem) => {
                    assert!(dies && problem.to_string().contains("limit is 100"), "{problem}");
                }
            }
            worker.stop().await;
        }
        other
    });
    drop(first);
    runtime().block_on(async {
        let problem = call().perform_async().await.unwrap_err();
        assert!(problem.is_unavailable(), "{problem}");
        assert!(problem.to_string().contains("installed client has ended"), "{problem}");
        // Handlers do not need the installed client.
        let bench = Bench::shared(&other.url(), other.namespace()).await;
        follow(&bench, From::Async).await;
    });
}

#[tokio::test]
async fn a_scope_leads_to_its_client_and_not_into_the_handlers_of_workers() {
    let (one, other) = (Bench::on_memory().await, Bench::on_memory().await);
    let call = || Double { number: 4 }.call();
    let submits = async {
        let first = call().perform_async().await.unwrap();
        let second = other.client.scope(call().perform_async()).await.unwrap();
        let (worker, _) = start(&other);
        let chain = Chain { left: 1, from: From::Async }.call();
        let chain = other.client.submit(chain).await.unwrap();
        assert_eq!(chain.result_within(PATIENCE).await.unwrap(), 1);
        (first, second, worker)
    };
    let (first, second, running) = Box::pin(one.client.scope(submits)).await;
    let knows = async |bench: &Bench, handle: &TaskHandle<i64>| {
        bench.client.inspector().get(handle.id()).await.unwrap().is_some()
    };
    assert!(knows(&one, &first).await && !knows(&other, &first).await);
    assert!(knows(&other, &second).await && !knows(&one, &second).await);
    running.stop().await;
}
