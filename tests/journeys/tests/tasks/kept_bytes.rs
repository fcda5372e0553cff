//! Ended tasks with large arguments. A queue keeps a limited number of their bytes, and logs a
//! purge because of this limit.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::Bench;
use optimus_core::{BoxError, Context, Counts, Fatal, QueueName, Task};
use optimus_testkit::{EachEvent, eventually};
use serde::{Deserialize, Serialize};
use tracing::{Level, subscriber::set_default};

const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes of a task's arguments.
const BYTES: usize = 100_000;

/// Dies in its first attempt.
#[derive(Serialize, Deserialize)]
struct Heavy {
    text: String,
}

impl Task for Heavy {
    const NAME: &'static str = "heavy";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Err(Fatal::new("no use").into())
    }
}

async fn counts(bench: &Bench) -> Counts {
    let queue = QueueName::new("default").unwrap();
    bench.client.inspector().counts(&queue).await.unwrap()
}

#[tokio::test]
async fn dead_tasks_above_the_bytes_that_are_kept_are_purged_and_the_log_says_how_many() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = said.clone();
    let log = EachEvent::new(move |event| log.lock().unwrap().push(event));
    let _default = set_default(log.of("optimus_worker::janitor"));
    let bench = Bench::on_memory().await;
    for _ in 0..6 {
        let call = Heavy { text: "x".repeat(BYTES) }.call();
        bench.client.submit(call).await.unwrap();
    }
    let worker = bench.start(bench.worker().task_type::<Heavy>());
    eventually("all tasks are dead", PATIENCE, async || counts(&bench).await.dead == 6).await;
    worker.stop().await;
    assert!(counts(&bench).await.dead_bytes > 6 * BYTES as u64);

    // The limit is the size of two and a half tasks.
    let kept = 5 * BYTES as u64 / 2;
    let worker = bench.start(bench.worker().keep_ended_bytes(kept).task_type::<Heavy>());
    eventually("the oldest tasks are purged", PATIENCE, async || counts(&bench).await.dead == 2)
        .await;
    let is_said = async || !said.lock().unwrap().is_empty();
    eventually("the purge is logged", PATIENCE, is_said).await;
    worker.stop().await;
    let left = counts(&bench).await;
    assert!(left.dead_bytes > 2 * BYTES as u64 && left.dead_bytes <= kept, "{left:?}");
    assert_eq!(left.purged, 4);
    let event = &said.lock().unwrap()[0];
    assert_eq!((event.level, event.get("queue")), (Level::WARN, "default"));
    let counts = ["tasks", "above_bytes", "above_count", "past_age"].map(|name| event.get(name));
    assert_eq!(counts, ["4", "4", "0", "0"]);
    assert!(event.message().contains("keep_ended_bytes"), "{event:?}");
}
