//! A worker whose roles don't run, for tests that do their work step by step: [`idle_worker`].

use std::sync::Arc;

use optimus_core::{BoxError, Client, Context, Task};
use serde::{Deserialize, Serialize};

use crate::{Worker, shared::Shared};

/// Does nothing, and succeeds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {}

impl Task for Nothing {
    const NAME: &'static str = "nothing";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A worker for [`Nothing`] in a store of this name, and a client of that store.
pub(crate) async fn idle_worker(store: &str) -> (Client, Arc<Shared>) {
    let url = format!("memory://{store}");
    let client = Client::builder(&url).connect().await.expect("a store in memory is always there");
    let worker = Worker::builder(&url).quiet().only_named_tasks().task_type::<Nothing>();
    (client, worker.build().expect("one task, one queue").idle_worker().await)
}
