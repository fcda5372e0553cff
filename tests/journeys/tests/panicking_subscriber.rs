//! A tracing subscriber that panics at each call about a task's span.

mod common;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use common::{Bench, Double};
use optimus_core::Task;
use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::set_global_default,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A subscriber that is enabled for the spans of attempts, and for nothing else.
#[derive(Default)]
struct Panics {
    last: AtomicU64,
    /// The number of calls. With it, the subscriber also panics at the exit of a span.
    entered: AtomicU64,
}

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "optimus::task"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        panic!("no events");
    }

    fn enter(&self, _: &Id) {
        let times = self.entered.fetch_add(1, Ordering::Relaxed);
        assert!(times % 2 == 1, "no entry");
    }

    fn exit(&self, _: &Id) {
        panic!("no exit");
    }
}

#[tokio::test]
async fn a_subscriber_that_panics_costs_no_attempt_and_no_slot() {
    set_global_default(Panics::default()).unwrap();
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().concurrency(1).task_type::<Double>());
    for number in 0..10 {
        let handle = bench.client.submit(Double { number }.call()).await.unwrap();
        assert_eq!(handle.result_within(PATIENCE).await.unwrap(), number * 2);
    }
    worker.stop().await;
}
