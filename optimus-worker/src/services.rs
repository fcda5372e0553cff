//! What the worker runs beside its tasks for other crates: [`Services`]. They run on the runtime of
//! the handlers, because they call user code, such as the hooks of a pool of connections.

use std::{
    mem,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::FutureExt;
use optimus_core::{Error, OwnClient, RunningService, Service, ServiceHost, panic_sentence};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;

/// The services of a worker.
#[derive(Default)]
pub(crate) struct Services {
    names: Vec<String>,
    stopping: CancellationToken,
    /// Those that have started and do not run yet.
    started: Mutex<Vec<RunningService>>,
    running: Mutex<Vec<AbortHandle>>,
    open: AtomicUsize,
}

/// Notes the end of a service, also if the runtime has dropped it.
struct Open(Arc<Shared>);

impl Services {
    /// Starts services with a client of the worker's store. If one can't start, none runs.
    pub(crate) async fn start(
        services: Vec<Service>,
        client: &Arc<OwnClient>,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        for service in services {
            all.names.push(service.name().to_owned());
            let host = ServiceHost { client: client.client(), stopping: all.stopping.clone() };
            let started = service.start(host).await?;
            all.started().push(started);
        }
        Ok(all)
    }

    /// Returns what they are, for the banner.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Runs those that have started. If one panics, the worker ends.
    pub(crate) fn run(&self, shared: &Arc<Shared>) {
        let started = mem::take(&mut *self.started());
        self.open.store(started.len(), Ordering::Release);
        for (name, service) in self.names.iter().cloned().zip(started) {
            let open = Open(shared.clone());
            let task = shared.runtime.spawn(shared.config.user_threads.run(|| async move {
                if let Err(panic) = AssertUnwindSafe(service).catch_unwind().await {
                    open.0.shutdown.fail(format!("{name} {}", panic_sentence(&*panic)));
                }
                drop(open);
            }));
            self.running().push(task.abort_handle());
        }
    }

    /// Asks them to end.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Returns how many still run.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Drops those that still run.
    pub(crate) fn abandon(&self) {
        self.running().drain(..).for_each(|task| task.abort());
    }

    fn started(&self) -> MutexGuard<'_, Vec<RunningService>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.services.open.fetch_sub(1, Ordering::AcqRel);
        self.0.wakeups.service_ended();
    }
}
