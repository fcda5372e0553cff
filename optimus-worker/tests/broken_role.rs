//! A role of the worker that panics: here in a subscriber of the user's, which roles call.

mod common;

use std::{fmt, thread, time::Duration};

use common::{Bench, Double};
use optimus_core::{BoxError, Context, Task, TaskState};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Panics where the claimer meets a task that it does not know, and where the keeper times a
/// handler out.
struct Touchy;

impl Subscriber for Touchy {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("optimus_worker")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut PanicOn("can't be run by this worker, and waits"));
        event.record(&mut PanicOn("timed out, and its handler blocks the runtime"));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct PanicOn(&'static str);

impl Visit for PanicOn {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        assert_ne!(
            format!("{value:?}").trim_matches('"'),
            self.0,
            "the subscriber does not like it"
        );
    }
}

#[derive(Serialize, Deserialize)]
struct Unknown {}

impl Task for Unknown {
    const NAME: &'static str = "unknown";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Keeps the only thread of its runtime.
#[derive(Serialize, Deserialize)]
struct Sleep {
    ms: u64,
}

impl Task for Sleep {
    const NAME: &'static str = "sleep";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        thread::sleep(Duration::from_millis(self.ms));
        Ok(())
    }
}

fn be_touchy() {
    // The second test finds it set.
    drop(tracing::subscriber::set_global_default(Touchy));
}

on_both! {
    async fn a_worker_whose_claimer_panics_ends_with_an_error_and_gives_back_its_tasks(
        bench: Bench
    ) {
        be_touchy();
        let handle = bench.client.submit(Unknown {}.call()).await.unwrap();
        let builder = bench.worker().task_type::<Double>().shutdown_grace(Duration::ZERO);
        let worker = builder.build().unwrap();
        let ended = timeout(PATIENCE, worker.run_until(std::future::pending::<()>())).await;
        let problem = ended.expect("it ends by itself").unwrap_err();
        assert!(problem.is_broken() && problem.to_string().contains("claimer"), "{problem}");
        assert_eq!(handle.status().await.unwrap(), TaskState::Ready);
    }

    async fn a_worker_whose_keeper_panics_ends_with_an_error_and_loses_nothing(bench: Bench) {
        be_touchy();
        let builder = bench.worker().task_type::<Sleep>().shutdown_grace(Duration::ZERO);
        let worker = builder.build().unwrap();
        let ended = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let endless = worker.run_until(std::future::pending::<()>());
            runtime.unwrap().block_on(async { timeout(PATIENCE, endless).await })
        });
        let sleep = Sleep { ms: 1_500 }.call().timeout(Duration::from_millis(300));
        let handle = bench.client.submit(sleep).await.unwrap();
        eventually("the worker has ended", PATIENCE, async || ended.is_finished()).await;
        let problem = ended.join().unwrap().expect("it ends by itself").unwrap_err();
        assert!(problem.is_broken() && problem.to_string().contains("deadlines"), "{problem}");
        assert_eq!(handle.status().await.unwrap(), TaskState::Retry);
        let other = bench.start(bench.worker().task_type::<Double>());
        let double = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        assert_eq!(double.result_within(PATIENCE).await.unwrap(), 8);
        other.stop().await;
    }
}
