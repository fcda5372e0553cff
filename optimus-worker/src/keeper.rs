//! The thread that handlers can't block: own runtime, own connections.

use std::{convert::Infallible, io, sync::Arc, thread, time::Duration};

use tokio::{runtime, sync::oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    deadlines::Deadlines,
    heartbeat::Heartbeat,
    janitor::Janitor,
    reaper::Reaper,
    relief::Relief,
    role::{play, supervise},
    shared::Shared,
    steward::Steward,
    stop_bell::StopBell,
    wakeups::Wakeup,
    work_bell::WorkBell,
};

/// Each role ends its act within this once it is asked to stop, unless Redis is away.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// Ends its thread when dropped.
pub(crate) struct Keeper {
    stop: CancellationToken,
    /// Closed when it has ended.
    ended: oneshot::Receiver<Infallible>,
}

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let (alive, ended) = oneshot::channel();
        let keeping = Box::pin(keep(shared, stop.clone()));
        #[cfg(feature = "simulation")]
        if optimus_core::machine::is_simulated() {
            // There one thread does all, and no handler blocks it.
            tokio::spawn(async move {
                Box::pin(keeping).await;
                drop(alive);
            });
            return Ok(Self { stop, ended });
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("optimus-keeper".into()).spawn(move || {
            runtime.block_on(keeping);
            drop((runtime, alive));
        })?;
        Ok(Self { stop, ended })
    }

    /// Stops it and waits for the last act; the last thing that a worker does.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // It tells nothing.
        drop((&mut self.ended).await);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let never = Wakeup::default();
    let Shared { shutdown, wakeups, .. } = &*shared;
    let (deadlines, relief) = (&wakeups.deadlines.wakeup, &wakeups.relief.wakeup);
    let (heartbeat, reaper) = (&wakeups.heartbeat, &wakeups.reaper);
    let work_bell = async {
        let mut bell = WorkBell::new(shared.clone(), stop.clone());
        play(&mut bell, &wakeups.work_bell, &stop).await;
        bell.leave().await;
    };
    let stop_bell = async {
        tokio::select! {
            biased;
            // What it may have popped is for this worker only.
            () = stop.cancelled() => {}
            () = play(StopBell::new(shared.clone()), &never, &stop) => {}
        }
    };
    let all = async {
        tokio::join!(
            supervise(
                "heartbeat",
                shutdown,
                play(Heartbeat::new(shared.clone()), heartbeat, &stop)
            ),
            supervise(
                "deadlines",
                shutdown,
                play(Deadlines::new(shared.clone()), deadlines, &stop)
            ),
            supervise("relief", shutdown, play(Relief::new(shared.clone()), relief, &stop)),
            supervise("reaper", shutdown, play(Reaper::new(shared.clone()), reaper, &stop)),
            supervise("janitor", shutdown, play(Janitor::new(shared.clone()), &never, &stop)),
            supervise("steward", shutdown, play(Steward::new(shared.clone()), &never, &stop)),
            supervise("work bell", shutdown, work_bell),
            supervise("stop bell", shutdown, stop_bell),
        );
    };
    tokio::select! {
        biased;
        () = all => {}
        // What was sent and is not heard of costs nothing: tokens and leases judge it.
        () = later_than(&stop, STOP_GRACE) => {}
    }
}

async fn later_than(stop: &CancellationToken, grace: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(grace).await;
}
