//! The agent that runs tasks. It is a worker as in any program.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use optimus::Worker;
use optimus_testkit::history::HistoryLog;

use super::{QUEUES, Role, Settings};

/// How long tasks may still run after the worker is asked to end.
const GRACE: Duration = Duration::from_secs(1);

pub(super) async fn run(settings: &Settings) -> anyhow::Result<()> {
    let Role::Worker { slots, lease_ms } = settings.role else { bail!("this agent runs a worker") };
    // Deliberate panics are part of the run and are not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let log = Arc::new(HistoryLog::open(&settings.folder)?);
    let lease = Duration::from_millis(lease_ms);
    let worker = Worker::builder(&settings.url)
        .quiet()
        .queues(QUEUES)
        .concurrency(slots)
        .lease(lease)
        .poll(lease / 4)
        .shutdown_grace(GRACE)
        .data(log);
    Ok(worker.run().await?)
}
