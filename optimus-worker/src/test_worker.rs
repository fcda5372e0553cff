//! A worker whose roles don't run, for tests that run each step themselves: [`idle_worker`].

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::{
    AttemptFacts, Backoff, BoxError, Client, Context, Lease, LogSeat, OnLost, Task, TaskId, Token,
    broker::SizeLimit,
};
use serde::{Deserialize, Serialize};

use crate::{Worker, attempts::Attempt, decide_outcome::Facts, shared::Shared};

/// A task that does nothing and succeeds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {}

impl Task for Nothing {
    const NAME: &'static str = "nothing";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Creates a worker for [`Nothing`] in a store of this name, and a client of that store.
pub(crate) async fn idle_worker(store: &str) -> (Client, Arc<Shared>) {
    idle_worker_of(store, &["default"]).await
}

/// The same, for these queues.
pub(crate) async fn idle_worker_of(store: &str, queues: &[&str]) -> (Client, Arc<Shared>) {
    let url = format!("memory://{store}");
    let client =
        Client::builder(&url).connect().await.expect("a store in memory can always be opened");
    let worker = Worker::builder(&url).quiet().only_named_tasks().task_type::<Nothing>();
    let worker = worker.queues(queues.iter().copied());
    (client, worker.build().expect("the settings are valid").idle_worker().await)
}

/// Returns an attempt of the worker at a task that is not stored.
pub(crate) fn attempt_of(shared: &Shared) -> Attempt {
    let id = TaskId::new(shared.queues[0].name.clone());
    let deadline = Instant::now() + Duration::from_secs(3600);
    let facts = AttemptFacts::first(id.clone(), deadline);
    let seat = LogSeat { desk: shared.log_desk.clone(), began: Instant::now().into(), began_ms: 1 };
    let worker = (shared.threads.clone(), shared.client.clone(), seat);
    let ctx = Context::build(facts, shared.data.clone(), Some(worker));
    let lease = Lease { id, worker: shared.queues[0].worker(), token: Token { seq: 1, fence: 1 } };
    Attempt::new(lease, 0, first_facts(), ctx)
}

/// Returns the facts of a first attempt at a task without options.
pub(crate) fn first_facts() -> Facts {
    Facts {
        task: "t",
        attempt: 1,
        failures: 0,
        max_retry: 0,
        backoff: Backoff::Fixed { wait: Duration::ZERO, jitter: 0.0 },
        result_ttl: Duration::ZERO,
        result_limit: SizeLimit::new(0, ""),
        biz_id: None,
        lane: None,
        outcome_ttl: None,
        member: None,
        on_lost: OnLost::Retry,
        wait: None,
        has_sides: false,
    }
}
