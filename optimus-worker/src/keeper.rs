//! The thread that handlers can't block: own runtime, own connections.

use std::{io, sync::Arc, thread};

use tokio::{runtime, sync::Notify};
use tokio_util::sync::CancellationToken;

use crate::{
    deadlines::Deadlines, heartbeat::Heartbeat, janitor::Janitor, reaper::Reaper, relief::Relief,
    role::play, shared::Shared, stop_bell::StopBell,
};

/// Ends its thread when dropped.
pub(crate) struct Keeper {
    stop: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
    #[cfg(feature = "simulation")]
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        #[cfg(feature = "simulation")]
        if optimus_core::machine::is_simulated() {
            return Ok(Self::beside_handlers(shared));
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("optimus-keeper".into())
            .spawn(move || runtime.block_on(keep(&shared, &stopped)))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            #[cfg(feature = "simulation")]
            task: None,
        })
    }

    /// On the runtime that is there: in a simulation one thread does all, and no handler blocks it.
    #[cfg(feature = "simulation")]
    fn beside_handlers(shared: Arc<Shared>) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { keep(&shared, &stopped).await });
        Self { stop, thread: None, task: Some(task) }
    }

    /// Stops it and waits for the last act; the last thing that a worker does.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        #[cfg(feature = "simulation")]
        if let Some(task) = self.task.take() {
            drop(task.await);
        }
        if let Some(thread) = self.thread.take() {
            // A keeper that panicked has said so on stderr.
            drop(tokio::task::spawn_blocking(move || thread.join()).await);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn keep(shared: &Arc<Shared>, stop: &CancellationToken) {
    let never = Notify::new();
    let stop_bells = futures_util::future::join_all((0..shared.queues.len()).map(async |queue| {
        // A bell is a hint, so its wait may be dropped half-way.
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = play(StopBell::new(shared.clone(), queue), &never, stop) => {}
        }
    }));
    tokio::join!(
        play(Heartbeat::new(shared.clone()), &shared.beat, stop),
        play(Deadlines::new(shared.clone()), &shared.attempts.deadlines.woken, stop),
        play(Relief::new(shared.clone()), &shared.attempts.relief.woken, stop),
        play(Reaper::new(shared.clone()), &shared.reap, stop),
        play(Janitor::new(shared.clone()), &never, stop),
        stop_bells,
    );
}
