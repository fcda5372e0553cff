//! What [`Worker::run`](crate::Worker::run) may do with its process: handle its signals, and exit
//! it: [`Process`].

use std::{process, sync::LazyLock, time::Duration};

use optimus_core::log_event;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use crate::{running::LOG_WITHIN, shared::Shared, shutdown::Shutdown, signals::Signals};

/// `EX_TEMPFAIL` of `sysexits.h`: to be tried again later.
pub(crate) const EXIT_BLOCKED: i32 = 75;
/// How long `run` and the code after it may take to end the process by themselves.
const RETURN_GRACE: Duration = Duration::from_secs(2);

/// Workers of this process that `run` and have not left.
static SERVING: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);

/// The process of a worker that `run` started. Its maintenance thread owns this.
#[derive(Debug)]
pub(crate) struct Process {
    signals: Signals,
    returned: oneshot::Receiver<()>,
    serving: Serving,
}

/// Held by the future of `run`. If it is dropped before the future returns, the process must not
/// exit.
#[derive(Debug)]
pub(crate) struct Return(oneshot::Sender<()>);

/// Counts one of [`SERVING`].
#[derive(Debug)]
struct Serving;

impl Process {
    pub(crate) fn own(signals: Signals) -> (Self, Return) {
        let (sender, returned) = oneshot::channel();
        (Self { signals, returned, serving: Serving::begin() }, Return(sender))
    }

    /// Begins the shutdown at the first signal, and skips its waits at the second. It never
    /// resolves.
    pub(crate) async fn handle_signals(&mut self, shutdown: &Shutdown) {
        self.signals.next().await;
        shutdown.begin();
        loop {
            self.signals.next().await;
            shutdown.hurry();
        }
    }

    /// The worker has left: exits the process if handlers stop it from ending by itself, after all
    /// workers that `run` in it have left.
    pub(crate) async fn leave(self, shared: &Shared) {
        drop(self.serving);
        // The sender is never dropped.
        drop(SERVING.subscribe().wait_for(|serving| *serving == 0).await);
        let ending = &shared.wakeups.ending;
        let on_runtime = || shared.slots.on_runtime();
        let freed = async {
            if self.returned.await.is_ok() {
                // The end of the runtime would wait for their threads.
                while on_runtime() > 0 {
                    if ending.fall_asleep(|| on_runtime() > 0) {
                        ending.wakeup.woken().await;
                    }
                }
            }
        };
        if timeout(RETURN_GRACE, freed).await.is_err() {
            log_exit(shared, on_runtime());
            shared.log.flush(LOG_WITHIN).await;
            process::exit(EXIT_BLOCKED);
        }
    }
}

/// Logs the exit, and what becomes of the worker's tasks: those that timed out before are reported.
fn log_exit(shared: &Shared, handlers: usize) {
    let unreported = shared.attempts.running() + shared.reporter.len();
    let text = if unreported == 0 {
        "handlers block their runtime, so the process exits; all tasks of this worker are reported"
    } else {
        "handlers block their runtime, so the process exits; tasks that are not reported run again \
         once the lease is over"
    };
    let code = EXIT_BLOCKED;
    log_event!(shared.log, ERROR, handlers, unreported, code, "{text}");
}

impl Return {
    /// Called as the last act of `run`.
    pub(crate) fn now(self) {
        // The maintenance thread may have ended; then nothing waits for this.
        self.0.send(()).ok();
    }
}

impl Serving {
    fn begin() -> Self {
        SERVING.send_modify(|serving| *serving += 1);
        Self
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        SERVING.send_modify(|serving| *serving -= 1);
    }
}
