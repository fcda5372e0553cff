//! A task that kills its worker is marked Dead, and no other task that ran there is marked Dead. A
//! supervisor starts the worker again each time.

use std::{
    env, process,
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Context, Reason, Task, TaskOptions, TaskState};
use optimus_testkit::{Proc, eventually};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::common::Bench;

/// The default of `max_losses`.
const MAX_LOSSES: u32 = 3;
const LEASE_MS: &str = "LEASE_MS";
/// How long everything except leases and restarts may take on a busy machine.
const SLACK: Duration = Duration::from_secs(15);

/// Kills its process before any other task of its claim can be reported.
#[derive(Serialize, Deserialize)]
struct Poison {}

impl Task for Poison {
    const NAME: &'static str = "poison";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        process::abort();
    }
}

crate::idle_task!(Innocent, "innocent", TaskOptions::new());

fn child(bench: &Bench, lease: Duration) -> Proc {
    let child = bench.child("poison::a_worker_process_that_may_die");
    child.env(LEASE_MS, lease.as_millis().to_string()).start()
}

#[tokio::test]
#[ignore = "other tests start this process with its settings"]
async fn a_worker_process_that_may_die() {
    let bench = Bench::of_parent().await;
    let lease = Duration::from_millis(env::var(LEASE_MS).unwrap().parse().unwrap());
    let builder = bench.worker().lease(lease).queues(["one", "other"]).concurrency(20);
    let builder = builder.task_type::<Poison>().task_type::<Innocent>();
    builder.build().unwrap().run_until(std::future::pending::<()>()).await.unwrap();
}

/// Runs one worker, and starts it again this long after each of its deaths. Each loss counts when
/// the lease of the dead worker is over. This lease may begin only at the next start, because Redis
/// had no heartbeat.
async fn only_the_poison_dies(lease: Duration, restarts_after: Duration) {
    let bound = MAX_LOSSES * (restarts_after + lease * 2) + SLACK;
    let bench = Bench::on_redis().await;
    let innocents = |count: usize, queue: &'static str| {
        let calls = (0..count).map(move |_| Innocent {}.call().queue(queue));
        bench.client.submit_all(calls)
    };
    let mut handles = innocents(5, "one").await.unwrap();
    handles.extend(innocents(5, "other").await.unwrap());
    let poison = bench.client.submit(Poison {}.call().queue("one")).await.unwrap();
    handles.extend(innocents(40, "one").await.unwrap());

    let begun = Instant::now();
    let mut starts = 0;
    let supervisor = async {
        loop {
            let mut worker = child(&bench, lease);
            starts += 1;
            worker.wait(bound).await;
            sleep(restarts_after).await;
        }
    };
    let all_ended = async {
        for handle in &handles {
            handle.result_within(bound).await.unwrap();
        }
        let innocents_took = begun.elapsed();
        let is_dead = async || poison.status().await.unwrap() == TaskState::Dead;
        eventually("the poison is marked Dead", bound, is_dead).await;
        innocents_took
    };
    let innocents_took = tokio::select! {
        took = all_ended => took,
        () = supervisor => unreachable!("the supervisor runs without end"),
    };
    let took = begun.elapsed();
    println!(
        "lease {lease:?}, restarted after {restarts_after:?}: {} other tasks succeeded within \
         {innocents_took:.1?}, the poison was dead after {took:.1?} and {starts} starts; \
         bound {bound:?}",
        handles.len()
    );
    assert!(took < bound, "{took:?}");
    let task = bench.client.inspector().get(poison.id()).await.unwrap().unwrap();
    assert_eq!((task.losses, task.failures), (MAX_LOSSES, 0));
    assert!(task.errors.iter().all(|error| error.reason == Reason::Lost));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_task_that_kills_its_worker_dies() {
    only_the_poison_dies(Duration::from_secs(1), Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_task_that_kills_its_worker_dies_if_that_is_restarted_late() {
    only_the_poison_dies(Duration::from_secs(1), Duration::from_millis(600)).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn a_worker_that_is_restarted_after_3_s_marks_the_poison_dead_and_no_other_task() {
        for lease in [5, 15].map(Duration::from_secs) {
            only_the_poison_dies(lease, Duration::from_secs(3)).await;
        }
    }
}
