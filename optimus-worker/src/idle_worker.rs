//! A worker whose roles don't run, for tests that run each step themselves: [`idle_worker`].

use std::sync::Arc;

use optimus_core::{BoxError, Client, Context, Task};
use serde::{Deserialize, Serialize};

use crate::{Worker, shared::Shared};

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
    let url = format!("memory://{store}");
    let client =
        Client::builder(&url).connect().await.expect("a store in memory can always be opened");
    let worker = Worker::builder(&url).quiet().only_named_tasks().task_type::<Nothing>();
    (client, worker.build().expect("the settings are valid").idle_worker().await)
}
