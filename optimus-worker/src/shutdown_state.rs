//! Which parts of the worker must end, and why: [`Shutdown`]. `shutdown_phases.rs` ends them.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use optimus_core::{log::Log, log_event};
use tokio_util::sync::CancellationToken;

/// The parts of the worker that must end, and the reason.
pub(crate) struct Shutdown {
    log: Log,
    /// The same state as `quiet`, but cheap enough to read for each task.
    is_quiet: AtomicBool,
    quiet: CancellationToken,
    now: CancellationToken,
    roles: CancellationToken,
    /// Set once the worker has left. A part that ends later is not a failure.
    has_left: AtomicBool,
    /// The reason why the worker can't continue.
    failure: OnceLock<String>,
}

impl Shutdown {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            log,
            is_quiet: AtomicBool::new(false),
            quiet: CancellationToken::new(),
            now: CancellationToken::new(),
            roles: CancellationToken::new(),
            has_left: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Asks the worker to end. It claims no more tasks from now on.
    pub(crate) fn begin(&self) {
        self.is_quiet.store(true, Ordering::SeqCst);
        self.quiet.cancel();
    }

    /// Returns whether the worker is ending, so that it claims and starts no more tasks.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::SeqCst)
    }

    /// Resolves once the worker is ending.
    pub(crate) async fn quieted(&self) {
        self.quiet.cancelled().await;
    }

    /// Skips the waits before the release, after a second signal.
    pub(crate) fn hurry(&self) {
        self.now.cancel();
    }

    /// Resolves once the waits must be skipped.
    pub(crate) async fn hurried(&self) {
        self.now.cancelled().await;
    }

    /// Asks the roles to end, each after its turn.
    pub(crate) fn stop_roles(&self) {
        self.roles.cancel();
    }

    /// Returns a token that is cancelled once the roles must end.
    pub(crate) fn roles(&self) -> &CancellationToken {
        &self.roles
    }

    /// Notes that the worker has left. A part that ends later is not a failure.
    pub(crate) fn left(&self) {
        self.has_left.store(true, Ordering::SeqCst);
    }

    /// Ends the worker because it can't continue. Only the first reason counts, and none counts
    /// once the worker has left.
    pub(crate) fn fail(&self, why: String) {
        if self.has_left.load(Ordering::SeqCst) {
            return;
        }
        if self.failure.set(why.clone()).is_ok() {
            log_event!(self.log, ERROR, error = why, "the worker can't continue and ends");
        }
        self.begin();
    }

    /// Returns the reason why the worker could not continue, if there is one.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}
