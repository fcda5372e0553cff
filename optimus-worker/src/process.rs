//! The process of [`Worker::run`](crate::Worker::run), which may handle its signals and exit it:
//! [`Process`].

use std::{process, sync::LazyLock, time::Duration};

use optimus_core::log_event;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use crate::{
    running_worker::LOG_WITHIN, shared::Shared, shutdown_state::Shutdown, signals::Signals,
};

/// The exit code `EX_TEMPFAIL` of `sysexits.h`, which means that a supervisor may try again later.
pub(crate) const EXIT_BLOCKED: i32 = 75;
/// How long `run` and the code after it may take to end the process. After this time, the
/// maintenance thread exits it.
const RETURN_GRACE: Duration = Duration::from_millis(1_500);

/// The workers that `run` in this process and have not left.
static SERVING: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);

/// The process of a worker that `run` started. The maintenance thread of the worker owns it.
#[derive(Debug)]
pub(crate) struct Process {
    signals: Signals,
    returned: oneshot::Receiver<()>,
    serving: Serving,
}

/// The future of `run` holds this value. If the future is dropped before it returns, the process
/// must not exit.
#[derive(Debug)]
pub(crate) struct Return(oneshot::Sender<()>);

/// A guard that counts one of [`SERVING`].
#[derive(Debug)]
struct Serving;

impl Process {
    pub(crate) fn own(signals: Signals) -> (Self, Return) {
        let (sender, returned) = oneshot::channel();
        (Self { signals, returned, serving: Serving::begin() }, Return(sender))
    }

    /// Begins the shutdown at the first signal, and skips its waits at the second signal. Never
    /// resolves.
    pub(crate) async fn handle_signals(&mut self, shutdown: &Shutdown) {
        self.signals.next().await;
        shutdown.begin();
        loop {
            self.signals.next().await;
            shutdown.hurry();
        }
    }

    /// Called when the worker has left. Exits the process if handlers or other code of the program
    /// prevent its end, after all workers that `run` in this process have left.
    pub(crate) async fn leave(self, shared: &Shared) {
        drop(self.serving);
        // This wait can't fail, because the sender is never dropped.
        drop(SERVING.subscribe().wait_for(|serving| *serving == 0).await);
        let ending = &shared.wakeups.ending;
        let (on_runtime, others) = (|| shared.slots.on_runtime(), &shared.config.user_threads);
        let freed = async {
            if self.returned.await.is_ok() {
                // The end of the runtime would wait for the threads of these handlers, and of other
                // code of the program.
                while on_runtime() > 0 {
                    if ending.fall_asleep(|| on_runtime() > 0) {
                        ending.wakeup.woken().await;
                    }
                }
                others.all_left().await;
            }
        };
        if timeout(RETURN_GRACE, freed).await.is_err() {
            log_exit(shared, (on_runtime(), others.count()));
            shared.log.flush(LOG_WITHIN).await;
            process::exit(EXIT_BLOCKED);
        }
    }
}

/// Logs the exit, how many handlers and how many threads of other code of the program prevent the
/// end, and what happens to the worker's tasks. The tasks that timed out before are reported.
fn log_exit(shared: &Shared, (handlers, others): (usize, usize)) {
    let unreported = shared.attempts.running() + shared.reporter.len();
    let text = if unreported == 0 {
        "code of the program blocks the runtime, so the process exits; all tasks of this worker \
         are reported"
    } else {
        "code of the program blocks the runtime, so the process exits; tasks that are not reported \
         run again once the lease is over"
    };
    let code = EXIT_BLOCKED;
    log_event!(shared.log, ERROR, handlers, others, unreported, code, "{text}");
}

impl Return {
    /// Notes that `run` returns. This is the last call of `run`.
    pub(crate) fn now(self) {
        // The maintenance thread may have ended. In this case, nothing waits for this message.
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
