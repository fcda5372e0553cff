//! How a worker ends, in phases with names: [`Shutdown`].
//!
//! *Quiet*: nothing new is claimed. *Drain*: what runs may finish, for the grace. *Cancel*: the
//! rest is asked to stop. *Release*: what still runs is dropped and given back, and costs no
//! attempt. The heartbeat goes on until all is reported, so no lease is lost on the way. With Redis
//! away all of that and the end of the roles take 10 s beyond the grace, however many queues.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{attempts::Stop, shared::Shared};

/// As good as for ever, and still an instant.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
const CANCEL_GRACE: Duration = Duration::from_secs(2);
const RELEASE_GRACE: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The signals of a shutdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    quiet: CancellationToken,
    now: CancellationToken,
    failed: CancellationToken,
    /// Why the worker can't go on.
    failure: Arc<OnceLock<String>>,
}

impl Shutdown {
    /// Nothing new is claimed any more.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.is_cancelled()
    }

    /// Resolves once nothing new is claimed any more.
    pub(crate) async fn quieted(&self) {
        self.quiet.cancelled().await;
    }

    /// Skips to the release: a second signal.
    pub(crate) fn hurry(&self) {
        self.now.cancel();
    }

    /// The worker can't go on. The first reason counts.
    pub(crate) fn fail(&self, why: String) {
        self.failure.get_or_init(|| why);
        self.failed.cancel();
    }

    /// Resolves once the worker can't go on, to the reason.
    pub(crate) async fn failed(&self) -> String {
        self.failed.cancelled().await;
        self.failure.get().cloned().unwrap_or_default()
    }

    /// Goes through the phases. The claimer still runs, and carries the last reports.
    pub(crate) async fn run(&self, shared: &Shared) {
        self.quiet.cancel();
        let running = shared.attempts.running();
        tracing::info!(running, "shutting down: nothing new is claimed");
        let idle = || shared.attempts.running() == 0;
        tokio::select! {
            biased;
            () = until(shared.config.shutdown_grace, idle) => {}
            () = self.now.cancelled() => {}
        }
        shared.attempts.stop_all(Stop::Shutdown);
        tokio::select! {
            biased;
            () = until(CANCEL_GRACE, idle) => {}
            () = self.now.cancelled() => {}
        }
        for attempt in shared.attempts.snapshot() {
            attempt.abandon.notify_one();
        }
        until(RELEASE_GRACE, || idle() && shared.reporter.len() == 0).await;
    }
}

/// Waits for a condition, but no longer than `within`.
fn until(within: Duration, condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let deadline = Instant::now() + within.min(FOREVER);
    async move {
        while !condition() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
