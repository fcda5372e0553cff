//! The process that runs tasks: [`Worker`].

use std::{fmt, future::Future};

use optimus_core::{Data, Error, Layers, Service, environment};

use crate::{
    WorkerBuilder,
    config::Config,
    process::{EXIT_BLOCKED, Process},
    running_worker::Running,
    shard_registry::Shardeds,
    signals::Signals,
    source_registry::SourceList,
    task_registry::Registry,
    worker_start::start,
};

/// Runs tasks from the queues that it serves, as many at once as it has slots.
pub struct Worker {
    config: Config,
    registry: Registry,
    shardeds: Shardeds,
    sources: SourceList,
    data: Data,
    layers: Layers,
    services: Vec<Service>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("Worker")
            .field("queues", &self.config.queues)
            .field("concurrency", &self.config.concurrency)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// The exit code 75 (`EX_TEMPFAIL` of `sysexits.h`). [`run`](Self::run) exits its process with
    /// this code if handlers, or other code of the program that it calls, prevent the process from
    /// ending by itself.
    pub const EXIT_BLOCKED: i32 = EXIT_BLOCKED;

    /// Creates a worker for the store at `url`: `redis://…`, `unix://…`, or `memory://name` for a
    /// store in this process.
    pub fn builder(url: &str) -> WorkerBuilder {
        WorkerBuilder::new(url)
    }

    /// Creates a worker from the environment variables `OPTIMUS_URL` (or `REDIS_URL` if it is not
    /// set), `OPTIMUS_QUEUES` (`critical=3,default` by weight or `critical>default` strictly),
    /// `OPTIMUS_CONCURRENCY`, `OPTIMUS_NAMESPACE`, `OPTIMUS_WORKER_NAME`, `OPTIMUS_LOG_EACH` (`1`:
    /// see [`WorkerBuilder::log_each`]) and `OPTIMUS_METRICS` (the address of metrics and probes,
    /// with the feature `metrics`). [`Client::from_env`](optimus_core::Client::from_env) reads the
    /// same URL and namespace.
    ///
    /// A setting of the builder replaces the value of a variable. For example, `OPTIMUS_QUEUES` has
    /// no effect if [`queues`](WorkerBuilder::queues), [`weighted`](WorkerBuilder::weighted) or
    /// [`strict`](WorkerBuilder::strict) is called. When the worker starts, it logs a warning for
    /// such a variable, and for each other variable whose name begins with `OPTIMUS_`.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if a variable is missing or invalid. The text names the variable to
    /// set.
    pub fn from_env() -> Result<WorkerBuilder, Error> {
        environment::check_text(|name| std::env::var_os(name))?;
        WorkerBuilder::from_env(|name| std::env::var(name).ok(), environment::names())
    }

    pub(crate) fn new(
        config: Config,
        (registry, shardeds, sources): (Registry, Shardeds, SourceList),
        (data, layers, services): (Data, Layers, Vec<Service>),
    ) -> Self {
        Self { config, registry, shardeds, sources, data, layers, services }
    }

    /// Runs until SIGTERM or SIGINT. Then the worker lets running tasks finish (see
    /// [`WorkerBuilder::shutdown_grace`]) and gives back the rest. A second signal skips the wait.
    ///
    /// Use `run` for a process that is only a worker. The worker leaves within 8 s after the grace,
    /// whether Redis answers or not. If `async` handlers still block threads of the runtime then,
    /// this future and the runtime may be unable to end. In this case, the process exits 2 s later
    /// with [`EXIT_BLOCKED`](Self::EXIT_BLOCKED), without running destructors. The same holds for
    /// rounds of shards, scans of sources, layers, services and the function for credentials. The
    /// tasks of the handlers that are not reported yet run again once their lease is over. So a
    /// supervisor that waits for the grace plus 10 s never has to kill the process. If other
    /// workers of the process also `run`, the process exits only after all of them have left. The
    /// process does not exit if this future was dropped.
    ///
    /// # Errors
    /// [`Error::is_unavailable`] or [`Error::is_unauthorized`] if Redis can't be used at the start.
    /// A later outage is not an error: the worker waits until Redis answers again.
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

    /// Runs like [`run`](Self::run), but until `stop` resolves. Returns the output of `stop`. Use
    /// `run_until` for workers inside a larger program and for tests: it handles no signals and
    /// never exits the process.
    ///
    /// The shutdown does not depend on this future or on its runtime. If the future is dropped, or
    /// its runtime ends, the worker ends at once: it stops its handlers, reports or gives back its
    /// tasks, and leaves, all within 8 s. If `async` handlers block threads of the runtime, this
    /// future returns as soon as the runtime polls it. A drop of such a runtime waits for these
    /// threads, but `Runtime::shutdown_background` does not wait.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub async fn run_until<T>(self, stop: impl Future<Output = T>) -> Result<T, Error> {
        let running = self.start(None).await?;
        let shared = running.shared();
        let output = tokio::select! {
            biased;
            output = stop => Some(output),
            () = shared.shutdown.quieted() => None,
        };
        running.end().await;
        let asked = "an operator has asked it to stop";
        output.ok_or_else(|| Error::broken(shared.shutdown.failure().unwrap_or(asked)))
    }

    async fn start(self, process: Option<Process>) -> Result<Running, Error> {
        let given = (self.data, self.layers, self.services);
        let served = (self.registry, self.shardeds, self.sources);
        Running::start(start(self.config, served, given).await?, process)
    }

    /// Returns a worker whose roles don't run.
    #[cfg(test)]
    pub(crate) async fn idle_worker(self) -> std::sync::Arc<crate::shared::Shared> {
        let given = (self.data, self.layers, self.services);
        start(self.config, (self.registry, self.shardeds, self.sources), given)
            .await
            .expect("the store can be opened")
    }
}
