//! Ended tasks with large arguments: a queue keeps no more bytes of them than it may, and what is
//! dropped for that is said.

mod common;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::Bench;
use optimus_core::{BoxError, Context, Counts, Fatal, QueueName, Task};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::set_default,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Of the arguments of a task.
const BYTES: usize = 100_000;

/// Dies at once.
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

/// Keeps the fields of the events that say what was purged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, Fields)>>>);

#[derive(Clone, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().contains("janitor")
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

async fn counts(bench: &Bench) -> Counts {
    let queue = QueueName::new("default").unwrap();
    bench.client.inspector().counts(&queue).await.unwrap()
}

#[tokio::test]
async fn dead_tasks_above_the_bytes_that_are_kept_are_purged_and_the_log_says_how_many() {
    let log = Log::default();
    let _default = set_default(log.clone());
    let bench = Bench::on_memory().await;
    for _ in 0..6 {
        let call = Heavy { text: "x".repeat(BYTES) }.call();
        bench.client.submit(call).await.unwrap();
    }
    let worker = bench.start(bench.worker().task_type::<Heavy>());
    eventually("all are dead", PATIENCE, async || counts(&bench).await.dead == 6).await;
    worker.stop().await;
    assert!(counts(&bench).await.dead_bytes > 6 * BYTES as u64);

    // Of two and a half of them.
    let kept = 5 * BYTES as u64 / 2;
    let worker = bench.start(bench.worker().keep_ended_bytes(kept).task_type::<Heavy>());
    eventually("the oldest are purged", PATIENCE, async || counts(&bench).await.dead == 2).await;
    let is_said = async || !log.0.lock().unwrap().is_empty();
    eventually("it is said", PATIENCE, is_said).await;
    worker.stop().await;
    let left = counts(&bench).await;
    assert!(left.dead_bytes > 2 * BYTES as u64 && left.dead_bytes <= kept, "{left:?}");
    assert_eq!(left.purged, 4);
    let (level, Fields(fields)) = log.0.lock().unwrap()[0].clone();
    let of = |name: &str| fields[name].as_str();
    assert_eq!(level, Level::WARN);
    assert_eq!((of("tasks"), of("above_bytes"), of("above_count")), ("4", "4", "0"));
    assert_eq!((of("past_age"), of("queue")), ("0", "default"));
    assert!(of("message").contains("keep_ended_bytes"), "{fields:?}");
}
