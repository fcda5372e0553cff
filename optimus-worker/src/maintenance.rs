//! The thread that handlers can't block: own runtime, own connections. It ends the worker.

use std::{convert::Infallible, future::pending, io, sync::Arc, thread, time::Duration};

use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    answered,
    cancel_listener::CancelListener,
    deadlines::Deadlines,
    driver_watch::DriverWatch,
    ending,
    fallback_reporter::FallbackReporter,
    heartbeat::Heartbeat,
    janitor::Janitor,
    leave,
    process::Process,
    reaper::Reaper,
    role::{run, supervise},
    shared::Shared,
    shutdown::Shutdown,
    steward::Steward,
    summary::Summary,
    user_code::discard,
    wakeups::Wakeup,
    work_listener::WorkListener,
};

/// Each role ends its act within this once it is asked to stop, unless Redis is away.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The maintenance thread of a worker, as its future sees it.
pub(crate) struct Maintenance {
    /// Closed when it has left.
    ended: oneshot::Receiver<Infallible>,
}

/// What the maintenance thread alone has.
struct Keeping {
    shared: Arc<Shared>,
    /// Cancelled when the claimer has ended.
    claimer: CancellationToken,
    /// If it was started by `run`.
    process: Option<Process>,
    /// Of the handlers.
    runtime: Handle,
    /// Dropped when it has left.
    alive: oneshot::Sender<Infallible>,
}

impl Maintenance {
    /// Keeps house until the worker has ended, whatever becomes of the future that started it.
    pub(crate) fn start(
        shared: Arc<Shared>,
        claimer: CancellationToken,
        process: Option<Process>,
    ) -> io::Result<Self> {
        let (alive, ended) = oneshot::channel();
        let runtime = Handle::current();
        let keeping = Keeping { shared, claimer, process, runtime, alive };
        #[cfg(feature = "simulation")]
        if optimus_core::platform::is_simulated() {
            // There one thread does all, and no handler blocks it.
            tokio::spawn(keeping.keep());
            return Ok(Self { ended });
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("optimus-maintenance".into()).spawn(move || {
            runtime.block_on(keeping.keep());
            // Where a name is looked up, its end would wait for that.
            runtime.shutdown_background();
        })?;
        Ok(Self { ended })
    }

    /// Resolves when it has left.
    pub(crate) async fn ended(&mut self) {
        // It tells nothing.
        drop((&mut self.ended).await);
    }
}

impl Keeping {
    async fn keep(self) {
        let shared = self.shared.clone();
        supervise("maintenance", &shared.shutdown, Box::pin(self.keep_and_leave())).await;
        // It may be the last to have the user's data.
        discard(shared);
    }

    async fn keep_and_leave(self) {
        let Self { shared, claimer, mut process, runtime, alive } = self;
        let shutdown = &shared.shutdown;
        let ending = async {
            supervise("shutdown", shutdown, ending::end(&shared)).await;
            shutdown.stop_roles();
        };
        let hearing = async {
            if let Some(process) = &mut process {
                process.hear(shutdown).await;
            }
            pending::<()>().await;
        };
        let all = async { tokio::join!(play_all(&shared, runtime), claimer.cancelled(), ending) };
        tokio::select! {
            biased;
            _ = all => {}
            () = hearing => {}
            // What was sent and is not heard of costs nothing: tokens and leases judge it.
            () = later_than(shutdown, STOP_GRACE) => {}
        }
        answered::tell_unanswered(&shared);
        supervise("leave", shutdown, leave::leave(&shared)).await;
        drop(alive);
        if let Some(process) = process {
            process.leave(&shared).await;
        }
    }
}

/// Until they are asked to stop.
async fn play_all(shared: &Arc<Shared>, runtime: Handle) {
    let never = Wakeup::default();
    let Shared { shutdown, wakeups, .. } = &**shared;
    let stop = shutdown.roles();
    let (deadlines, fallback_reporter) =
        (&wakeups.deadlines.wakeup, &wakeups.fallback_reporter.wakeup);
    let (heartbeat, reaper) = (&wakeups.heartbeat, &wakeups.reaper);
    let (watch, driver_watch) =
        (DriverWatch::new(shared.clone(), runtime), &wakeups.driver_watch.wakeup);
    let work_listener = async {
        let mut bell = WorkListener::new(shared.clone(), stop.clone());
        run(&mut bell, &wakeups.work_listener, stop).await;
        bell.leave().await;
    };
    let summary = async {
        let mut summary = Summary::new(shared.clone());
        run(&mut summary, &never, stop).await;
        summary.tell();
    };
    let cancel_listener = async {
        tokio::select! {
            biased;
            // What it may have popped is for this worker only.
            () = stop.cancelled() => {}
            () = run(CancelListener::new(shared.clone()), &never, stop) => {}
        }
    };
    let heartbeat = run(Heartbeat::new(shared.clone()), heartbeat, stop);
    let deadlines = run(Deadlines::new(shared.clone()), deadlines, stop);
    tokio::join!(
        supervise("heartbeat", shutdown, heartbeat),
        supervise("deadlines", shutdown, deadlines),
        supervise(
            "fallback_reporter",
            shutdown,
            run(FallbackReporter::new(shared.clone()), fallback_reporter, stop)
        ),
        supervise("driver_watch", shutdown, run(watch, driver_watch, stop)),
        supervise("reaper", shutdown, run(Reaper::new(shared.clone()), reaper, stop)),
        supervise("janitor", shutdown, run(Janitor::new(shared.clone()), &never, stop)),
        supervise("steward", shutdown, run(Steward::new(shared.clone()), &never, stop)),
        supervise("summary", shutdown, summary),
        supervise("work listener", shutdown, work_listener),
        supervise("cancel listener", shutdown, cancel_listener),
    );
}

async fn later_than(shutdown: &Shutdown, grace: Duration) {
    shutdown.roles().cancelled().await;
    sleep(grace).await;
}
