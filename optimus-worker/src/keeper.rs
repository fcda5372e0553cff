//! The thread that handlers can't block: own runtime, own connections. It ends the worker.

use std::{convert::Infallible, future::pending, io, sync::Arc, thread, time::Duration};

use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    deadlines::Deadlines,
    ending,
    heartbeat::Heartbeat,
    janitor::Janitor,
    lookout::Lookout,
    process::Process,
    reaper::Reaper,
    relief::Relief,
    role::{play, supervise},
    shared::Shared,
    shutdown::Shutdown,
    sign_off,
    steward::Steward,
    stop_bell::StopBell,
    user_code::discard,
    wakeups::Wakeup,
    work_bell::WorkBell,
};

/// Each role ends its act within this once it is asked to stop, unless Redis is away.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The keeper of a worker, as its future sees it.
pub(crate) struct Keeper {
    /// Closed when it has signed off.
    ended: oneshot::Receiver<Infallible>,
}

/// What the keeper alone has.
struct Keeping {
    shared: Arc<Shared>,
    /// Cancelled when the claimer has ended.
    claimer: CancellationToken,
    /// If it was started by `run`.
    process: Option<Process>,
    /// Of the handlers.
    runtime: Handle,
    /// Dropped when it has signed off.
    alive: oneshot::Sender<Infallible>,
}

impl Keeper {
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
        if optimus_core::machine::is_simulated() {
            // There one thread does all, and no handler blocks it.
            tokio::spawn(keeping.keep());
            return Ok(Self { ended });
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("optimus-keeper".into()).spawn(move || {
            runtime.block_on(keeping.keep());
            // Where a name is looked up, its end would wait for that.
            runtime.shutdown_background();
        })?;
        Ok(Self { ended })
    }

    /// Resolves when it has signed off.
    pub(crate) async fn ended(&mut self) {
        // It tells nothing.
        drop((&mut self.ended).await);
    }
}

impl Keeping {
    async fn keep(self) {
        let shared = self.shared.clone();
        supervise("keeper", &shared.shutdown, Box::pin(self.keep_and_leave())).await;
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
        supervise("sign-off", shutdown, sign_off::leave(&shared)).await;
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
    let (deadlines, relief) = (&wakeups.deadlines.wakeup, &wakeups.relief.wakeup);
    let (heartbeat, reaper) = (&wakeups.heartbeat, &wakeups.reaper);
    let (watch, lookout) = (Lookout::new(shared.clone(), runtime), &wakeups.lookout.wakeup);
    let work_bell = async {
        let mut bell = WorkBell::new(shared.clone(), stop.clone());
        play(&mut bell, &wakeups.work_bell, stop).await;
        bell.leave().await;
    };
    let stop_bell = async {
        tokio::select! {
            biased;
            // What it may have popped is for this worker only.
            () = stop.cancelled() => {}
            () = play(StopBell::new(shared.clone()), &never, stop) => {}
        }
    };
    let heartbeat = play(Heartbeat::new(shared.clone()), heartbeat, stop);
    let deadlines = play(Deadlines::new(shared.clone()), deadlines, stop);
    tokio::join!(
        supervise("heartbeat", shutdown, heartbeat),
        supervise("deadlines", shutdown, deadlines),
        supervise("relief", shutdown, play(Relief::new(shared.clone()), relief, stop)),
        supervise("lookout", shutdown, play(watch, lookout, stop)),
        supervise("reaper", shutdown, play(Reaper::new(shared.clone()), reaper, stop)),
        supervise("janitor", shutdown, play(Janitor::new(shared.clone()), &never, stop)),
        supervise("steward", shutdown, play(Steward::new(shared.clone()), &never, stop)),
        supervise("work bell", shutdown, work_bell),
        supervise("stop bell", shutdown, stop_bell),
    );
}

async fn later_than(shutdown: &Shutdown, grace: Duration) {
    shutdown.roles().cancelled().await;
    sleep(grace).await;
}
