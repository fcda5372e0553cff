//! The maintenance thread, which ends the worker. Handlers can't block it, because it has its own
//! runtime and connections.

use std::{
    convert::Infallible,
    future::{Future, pending},
    io,
    pin::Pin,
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    answered_reports,
    attendance::Attends,
    cancel_listener::CancelListener,
    deadlines::Deadlines,
    fallback_reporter::FallbackReporter,
    heartbeat::Heartbeat,
    io_driver_watch::DriverWatch,
    janitor::Janitor,
    log_writer::LogWriter,
    operations::CarriesOn,
    posts::Posts,
    process::Process,
    reaper::Reaper,
    relay::Relay,
    role::{run, supervise},
    role_wakeups::Wakeup,
    scheduler::Scheduler,
    shared::Shared,
    shutdown_phases,
    shutdown_state::Shutdown,
    steward::Steward,
    summary::Summary,
    tally_writer::TallyWriter,
    user_code::discard,
    work_listener::WorkListener,
    worker_leave,
};

/// The time in which each role ends its turn after it is asked to stop, unless Redis does not
/// answer.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The maintenance thread of a worker, as the future of the worker sees it.
pub(crate) struct Maintenance {
    /// Closed when the worker has left.
    ended: oneshot::Receiver<Infallible>,
}

/// The values that only the maintenance thread has.
struct Thread {
    shared: Arc<Shared>,
    /// Cancelled when the claimer has ended.
    claimer: CancellationToken,
    /// The process, if `run` started the worker.
    process: Option<Process>,
    /// The handlers' runtime.
    runtime: Handle,
    /// Dropped when the worker has left.
    alive: oneshot::Sender<Infallible>,
}

impl Maintenance {
    /// Runs until the worker has ended, even if the future that started it is dropped.
    pub(crate) fn start(
        shared: Arc<Shared>,
        claimer: CancellationToken,
        process: Option<Process>,
    ) -> io::Result<Self> {
        let (alive, ended) = oneshot::channel();
        let runtime = Handle::current();
        let thread = Thread { shared, claimer, process, runtime, alive };
        #[cfg(feature = "simulation")]
        if optimus_core::platform::is_simulated() {
            // A simulation has only one thread, and no handler blocks that thread.
            tokio::spawn(thread.run());
            return Ok(Self { ended });
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("optimus-maintenance".into()).spawn(move || {
            runtime.block_on(thread.run());
            // The end of the runtime would otherwise wait for a name resolution.
            runtime.shutdown_background();
        })?;
        Ok(Self { ended })
    }

    /// Resolves when the worker has left.
    pub(crate) async fn ended(&mut self) {
        // Nothing is sent, because the sender is only dropped.
        drop((&mut self.ended).await);
    }
}

impl Thread {
    async fn run(self) {
        let shared = self.shared.clone();
        supervise("maintenance", &shared.shutdown, Box::pin(self.run_and_leave())).await;
        // This thread may be the last owner of the user's data.
        discard(shared);
    }

    async fn run_and_leave(self) {
        let Self { shared, claimer, mut process, runtime, alive } = self;
        let shutdown = &shared.shutdown;
        let ending = async {
            supervise("shutdown", shutdown, shutdown_phases::end(&shared)).await;
            shutdown.stop_roles();
        };
        let signals = async {
            if let Some(process) = &mut process {
                process.handle_signals(shutdown).await;
            }
            pending::<()>().await;
        };
        let mut summary = Summary::new(shared.clone());
        let mut tally_writer = TallyWriter::new(shared.clone());
        let mut log_writer = LogWriter::new(shared.clone());
        let writers = (&mut tally_writer, &mut log_writer);
        let roles = on_heap(|| run_roles(&shared, runtime, &mut summary, writers));
        #[cfg(feature = "metrics")]
        let roles = shared.metrics.beats.maintenance.watch(&shared.config, roles);
        let all = async { tokio::join!(roles, claimer.cancelled(), ending) };
        tokio::select! {
            biased;
            _ = all => {}
            () = signals => {}
            // Unanswered calls do no harm, because scripts check their tokens and leases.
            () = later_than(shutdown, STOP_GRACE) => {}
        }
        answered_reports::log_unanswered(&shared);
        summary.log();
        tokio::join!(
            supervise("log writer", shutdown, log_writer.leave()),
            supervise("tally writer", shutdown, tally_writer.leave()),
        );
        supervise("leave", shutdown, worker_leave::leave(&shared)).await;
        shutdown.left();
        drop(alive);
        if let Some(process) = process {
            process.leave(&shared).await;
        }
    }
}

/// Runs all roles of this thread until they are asked to stop.
async fn run_roles(
    shared: &Arc<Shared>,
    runtime: Handle,
    summary: &mut Summary,
    (tally_writer, log_writer): (&mut TallyWriter, &mut LogWriter),
) {
    let never = Wakeup::default();
    let Shared { shutdown, wakeups, .. } = &**shared;
    let (stop, of) = (shutdown.roles(), || shared.clone());
    let (deadlines, fallback) = (&wakeups.deadlines.wakeup, &wakeups.fallback_reporter.wakeup);
    let (heartbeat, reaper, scheduler) = (&wakeups.heartbeat, &wakeups.reaper, &wakeups.scheduler);
    let (driver_watch, log_wakeup) = (&wakeups.driver_watch.wakeup, &wakeups.log_writer.wakeup);
    let work_listener = || async {
        let mut listener = WorkListener::new(of(), stop.clone());
        run(&mut listener, &wakeups.work_listener, stop).await;
        listener.leave().await;
    };
    let cancel_listener = || async {
        tokio::select! {
            biased;
            // A stop request that was popped is for this worker only, so no request is lost.
            () = stop.cancelled() => {}
            () = run(CancelListener::new(of()), &never, stop) => {}
        }
    };
    let relay = || async {
        let mut relay = Relay::new(of());
        run(&mut relay, &wakeups.relay, stop).await;
        relay.leave().await;
    };
    let attends = || async {
        let mut attends = Attends::new(of());
        run(&mut attends, &wakeups.attendance.wakeup, stop).await;
        attends.leave().await;
    };
    let posts = || async {
        let mut posts = Posts::new(of());
        run(&mut posts, &wakeups.posts, stop).await;
        posts.leave().await;
    };
    let watch = || run(DriverWatch::new(of(), runtime), driver_watch, stop);
    tokio::join!(
        supervise("heartbeat", shutdown, on_heap(|| run(Heartbeat::new(of()), heartbeat, stop))),
        supervise("posts", shutdown, on_heap(posts)),
        supervise("deadlines", shutdown, on_heap(|| run(Deadlines::new(of()), deadlines, stop))),
        supervise(
            "fallback reporter",
            shutdown,
            on_heap(|| run(FallbackReporter::new(of()), fallback, stop))
        ),
        supervise("driver watch", shutdown, on_heap(watch)),
        supervise("reaper", shutdown, on_heap(|| run(Reaper::new(of()), reaper, stop))),
        supervise("janitor", shutdown, on_heap(|| run(Janitor::new(of()), &never, stop))),
        supervise("steward", shutdown, on_heap(|| run(Steward::new(of()), &never, stop))),
        supervise("relay", shutdown, on_heap(relay)),
        supervise("operations", shutdown, on_heap(|| carry_operations_on(of(), stop))),
        supervise("attendance", shutdown, on_heap(attends)),
        supervise("scheduler", shutdown, on_heap(|| run(Scheduler::new(of()), scheduler, stop))),
        supervise("summary", shutdown, on_heap(|| run(summary, &never, stop))),
        supervise("tally writer", shutdown, on_heap(|| run(tally_writer, &never, stop))),
        supervise("log writer", shutdown, on_heap(|| run(log_writer, log_wakeup, stop))),
        supervise("work listener", shutdown, on_heap(work_listener)),
        supervise("cancel listener", shutdown, on_heap(cancel_listener)),
    );
}

/// Carries operations on, and gives the last one back.
async fn carry_operations_on(shared: Arc<Shared>, stop: &CancellationToken) {
    let mut operations = CarriesOn::new(shared);
    run(&mut operations, &Wakeup::default(), stop).await;
    operations.leave().await;
}

/// Makes a future on the heap. Without optimization, each future that a function makes or moves has
/// a place of its own on the stack, and all of them together do not fit into that of a thread.
#[inline(never)]
fn on_heap<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}

async fn later_than(shutdown: &Shutdown, grace: Duration) {
    shutdown.roles().cancelled().await;
    sleep(grace).await;
}
