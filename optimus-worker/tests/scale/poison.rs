//! A task that kills its worker is buried, and nothing that ran beside it is buried with it.

mod common;

use std::{env, process, time::Duration};

use common::Bench;
use optimus_core::{BoxError, Context, Reason, Task, TaskState};
use optimus_testkit::{Proc, Signal, eventually};
use serde::{Deserialize, Serialize};

const LEASE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(30);
/// The default of `max_losses`.
const MAX_LOSSES: u32 = 3;

/// Kills its process before anything that was claimed with it can be reported.
#[derive(Serialize, Deserialize)]
struct Poison {}

impl Task for Poison {
    const NAME: &'static str = "poison";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        process::abort();
    }
}

/// Ends well, unless its process dies first.
#[derive(Serialize, Deserialize)]
struct Innocent {}

impl Task for Innocent {
    const NAME: &'static str = "innocent";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// This test binary again, as a worker process that may die.
fn child(bench: &Bench) -> Proc {
    Proc::program(env::current_exe().unwrap())
        .arg("a_worker_process_for_the_test_beside")
        .arg("--exact")
        .arg("--ignored")
        .env("CHILD_URL", bench.url())
        .env("CHILD_NAMESPACE", bench.namespace())
        .start()
}

#[tokio::test]
#[ignore = "a process for the other test, which starts it with what it needs"]
async fn a_worker_process_for_the_test_beside() {
    let [url, namespace] = ["CHILD_URL", "CHILD_NAMESPACE"].map(|name| env::var(name).unwrap());
    let bench = Bench::beside(&url, &namespace).await;
    let builder = bench.worker().lease(LEASE).queues(["one", "other"]).concurrency(20);
    let worker = bench.start(builder.task_type::<Poison>().task_type::<Innocent>());
    Signal::new().wait_for(1).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_kills_its_worker_dies_alone() {
    let bench = Bench::on_redis().await;
    let submit = async |queue| bench.client.submit(Innocent {}.call().queue(queue)).await.unwrap();
    let mut innocents = Vec::new();
    for queue in ["one", "one", "one", "one", "other", "other"] {
        innocents.push(submit(queue).await);
    }
    let poison = bench.client.submit(Poison {}.call().queue("one")).await.unwrap();
    innocents.push(submit("one").await);
    let calls = (0..50).map(|_| Innocent {}.call().queue("one"));
    innocents.extend(bench.client.submit_all(calls).await.unwrap());

    for _ in 0..MAX_LOSSES {
        assert!(!child(&bench).wait(SOON).await.success());
    }
    let mut survivor = child(&bench);
    for handle in &innocents {
        handle.result_within(SOON).await.unwrap();
    }
    let is_dead = async || poison.status().await.unwrap() == TaskState::Dead;
    eventually("the poison is buried", SOON, is_dead).await;
    survivor.kill9();
    let task = bench.client.inspector().get(poison.id()).await.unwrap().unwrap();
    assert_eq!((task.losses, task.failures), (MAX_LOSSES, 0));
    assert!(task.errors.iter().all(|error| error.reason == Reason::Lost));
}
