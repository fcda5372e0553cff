//! The process that runs tasks: [`Worker`].

use std::future::Future;

use optimus_core::{Data, Error, Layers};

use crate::{
    WorkerBuilder,
    config::Config,
    process::{EXIT_BLOCKED, Process},
    registry::Registry,
    running::Running,
    signals::Signals,
    start::start,
};

/// Runs tasks: as many at once as it has slots, from the queues it serves.
pub struct Worker {
    config: Config,
    registry: Registry,
    data: Data,
    layers: Layers,
}

impl Worker {
    /// [`run`](Self::run) exits its process with this code if handlers stop it from ending by
    /// itself: 75, `EX_TEMPFAIL` of `sysexits.h`.
    pub const EXIT_BLOCKED: i32 = EXIT_BLOCKED;

    /// A worker for the store at `url`: `redis://…`, `unix://…`, or `memory://name` together with a
    /// client of the same process.
    pub fn builder(url: &str) -> WorkerBuilder {
        WorkerBuilder::new(url)
    }

    /// A worker set up by the environment: `OPTIMUS_URL` (else `REDIS_URL`), `OPTIMUS_QUEUES`
    /// (`critical=3,default` by weight or `critical>default` strictly), `OPTIMUS_CONCURRENCY`,
    /// `OPTIMUS_NAMESPACE`, `OPTIMUS_WORKER_NAME` and `OPTIMUS_LOG_EACH` (`1`: see
    /// [`WorkerBuilder::log_each`]).
    /// [`Client::from_env`](optimus_core::Client::from_env) reads the same URL and namespace.
    ///
    /// What the code sets on the builder replaces what a variable has set: `OPTIMUS_QUEUES` has no
    /// effect if [`queues`](WorkerBuilder::queues), [`weighted`](WorkerBuilder::weighted) or
    /// [`strict`](WorkerBuilder::strict) is called.
    ///
    /// # Errors
    /// [`Error::is_invalid`], with what to set.
    pub fn from_env() -> Result<WorkerBuilder, Error> {
        WorkerBuilder::from_env(|name| std::env::var(name).ok())
    }

    pub(crate) fn new(config: Config, registry: Registry, data: Data, layers: Layers) -> Self {
        Self { config, registry, data, layers }
    }

    /// Runs until SIGTERM or SIGINT, then lets running tasks finish (see
    /// [`WorkerBuilder::shutdown_grace`]) and gives back the rest. A second signal skips the wait.
    ///
    /// Use it for a process that is only a worker. The worker leaves within 8 s after the grace,
    /// whether Redis answers or not. If `async` handlers still block threads of the runtime then,
    /// this future and the runtime may be unable to end. 2 s later the process exits with
    /// [`EXIT_BLOCKED`](Self::EXIT_BLOCKED), without running destructors. Tasks of these
    /// handlers that are not reported yet run again once their lease is over. So a supervisor that
    /// waits for the grace and 10 s never has to kill the process. If other workers of the process
    /// also `run`, it exits only after all of them have left. It does not exit if this future was
    /// dropped.
    ///
    /// # Errors
    /// [`Error::is_unavailable`], [`Error::is_unauthorized`] if Redis can't be reached at the
    /// start; a later outage is no error, and the worker waits until it is over.
    /// [`Error::is_broken`] if a part of the worker panicked.
    pub async fn run(self) -> Result<(), Error> {
        let signals = Signals::listen().map_err(|problem| {
            Error::invalid(format!("can't listen for SIGTERM and SIGINT: {problem}"))
        })?;
        let (process, returning) = Process::own(signals);
        let running = self.start(Some(process)).await?;
        let shared = running.shared();
        shared.shutdown.quieted().await;
        running.end().await;
        returning.now();
        shared.shutdown.failure().map_or(Ok(()), |why| Err(Error::broken(why)))
    }

    /// As [`run`](Self::run), until `stop` resolves; returns what it resolves to. Use it for
    /// workers inside a larger program and for tests: it handles no signals, and never exits the
    /// process.
    ///
    /// The shutdown does not depend on this future or on its runtime. If the future is dropped, or
    /// its runtime ends, the worker ends at once: it stops its handlers, reports or gives back what
    /// it held, and leaves, in at most 8 s. If `async` handlers block threads of the runtime, this
    /// returns as soon as the runtime polls it. The end of such a runtime waits for these threads;
    /// `Runtime::shutdown_background` does not.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until<T>(self, stop: impl Future<Output = T>) -> Result<T, Error> {
        let running = self.start(None).await?;
        let shared = running.shared();
        let output = tokio::select! {
            biased;
            output = stop => Some(output),
            () = shared.shutdown.quieted() => None,
        };
        running.end().await;
        output.ok_or_else(|| Error::broken(shared.shutdown.failure().unwrap_or_default()))
    }

    async fn start(self, process: Option<Process>) -> Result<Running, Error> {
        let given = (self.data, self.layers);
        Running::start(start(self.config, self.registry, given).await?, process)
    }

    /// A worker whose roles don't run.
    #[cfg(test)]
    pub(crate) async fn idle_worker(self) -> std::sync::Arc<crate::shared::Shared> {
        let given = (self.data, self.layers);
        start(self.config, self.registry, given).await.expect("the store is there")
    }
}
