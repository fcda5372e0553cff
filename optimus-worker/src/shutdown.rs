//! The signals of a shutdown: [`Shutdown`]. The phases themselves are in `ending.rs`.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use optimus_core::{log::Log, log_event};
use tokio_util::sync::CancellationToken;

/// What has to end, and why.
pub(crate) struct Shutdown {
    log: Log,
    /// As `quiet`, but cheap enough to read for each task.
    is_quiet: AtomicBool,
    quiet: CancellationToken,
    now: CancellationToken,
    roles: CancellationToken,
    /// Set once the worker has left: what ends after that is no failure.
    has_left: AtomicBool,
    /// Why the worker can't go on.
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

    /// Asks the worker to end: nothing new is claimed from now on.
    pub(crate) fn begin(&self) {
        self.is_quiet.store(true, Ordering::SeqCst);
        self.quiet.cancel();
    }

    /// Whether the worker is ending: nothing is claimed or started any more.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::SeqCst)
    }

    /// Resolves once the worker is ending.
    pub(crate) async fn quieted(&self) {
        self.quiet.cancelled().await;
    }

    /// Skips to the release: a second signal.
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

    /// Cancelled once the roles are to end.
    pub(crate) fn roles(&self) -> &CancellationToken {
        &self.roles
    }

    /// The worker has left. What ends after it is no failure.
    pub(crate) fn left(&self) {
        self.has_left.store(true, Ordering::SeqCst);
    }

    /// The worker can't go on, and ends. The first reason counts; none counts once it has left.
    pub(crate) fn fail(&self, why: String) {
        if self.has_left.load(Ordering::SeqCst) {
            return;
        }
        if self.failure.set(why.clone()).is_ok() {
            log_event!(self.log, ERROR, error = why, "the worker can't go on and ends");
        }
        self.begin();
    }

    /// Why the worker could not go on, if it could not.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}
