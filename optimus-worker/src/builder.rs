//! The settings of a worker: [`WorkerBuilder`].

use std::{fmt, sync::Arc, time::Duration};

use optimus_core::{
    AskCredentials, BoxError, Credentials, Data, Error, Layer, Layers, NAMESPACE_DEFAULT,
    QueueName, Service, Sharded, Source, Task, TaskDefinition, TaskFn, WithService,
    broker::{Keep, SizeLimit},
    log::Level,
};

use crate::{
    Worker,
    config::{Config, FOREVER, Order},
    environment::Environment,
    shard_registry::Shardeds,
    source_registry::SourceList,
    task_registry::Registry,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const UNUSED_FOR: Duration = DAY;
/// In effect no limit, but a number that scripts can still compute with.
const ENDED_FOR_MAX: Duration = DAY.saturating_mul(36_500);

/// In effect no limit for bytes. Up to this number, Lua represents each whole number exactly.
const ENDED_BYTES_MAX: u64 = 1 << 53;

/// The default limit of a result. The default limit of payloads is the same.
const RESULT_LIMIT: usize = 1024 * 1024;

/// Settings of a [`Worker`], each with a default.
#[must_use = "a builder does nothing until `.run().await`"]
pub struct WorkerBuilder {
    pub(crate) config: Config,
    pub(crate) environment: Environment,
    data: Data,
    layers: Layers,
    tasks: Vec<TaskDefinition>,
    shardeds: Vec<Sharded>,
    services: Vec<Service>,
    sources: Vec<Source>,
    scans: bool,
    inventory: bool,
    pub(crate) problem: Option<Error>,
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("WorkerBuilder")
            .field("queues", &self.config.queues)
            .field("concurrency", &self.config.concurrency)
            .finish_non_exhaustive()
    }
}

impl WorkerBuilder {
    pub(crate) fn new(url: &str) -> Self {
        let config = Config {
            url: url.to_owned(),
            credentials: None,
            namespace: NAMESPACE_DEFAULT.to_owned(),
            name: None,
            queues: Vec::new(),
            order: Order::default(),
            concurrency: 64,
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(5),
            misfit_grace: Duration::from_secs(3600),
            keep_ended: Keep::DEFAULT,
            unused_for: UNUSED_FOR,
            shutdown_grace: Duration::from_secs(25),
            result_limit: SizeLimit::new(RESULT_LIMIT, "WorkerBuilder::result_limit"),
            banner: true,
            without_effect: Vec::new(),
            user_threads: Arc::default(),
            metrics: None,
            success_level: Level::DEBUG,
        };
        Self {
            config,
            environment: Environment::default(),
            data: Data::new(),
            layers: Layers::default(),
            tasks: Vec::new(),
            shardeds: Vec::new(),
            services: Vec::new(),
            sources: Vec::new(),
            scans: true,
            inventory: true,
            problem: None,
        }
    }

    /// Sets the prefix of all keys. Clients must use the same prefix.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.namespace = namespace.into();
        self
    }

    /// Gets the user and the password from this function and not from the URL: see
    /// [`ClientBuilder::credentials`](optimus_core::ClientBuilder::credentials). The function runs
    /// on the runtime of the worker. While handlers block all threads of that runtime, the worker
    /// uses the last answer of the function.
    pub fn credentials<F, R, C>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<C, BoxError>> + Send + 'static,
        C: Into<Credentials>,
    {
        let threads = self.config.user_threads.clone();
        self.config.credentials = Some(AskCredentials::new(move || threads.run(&ask)));
        self
    }

    /// Sets the worker's name. The default is the name of its machine. The id of the worker in logs
    /// and for an [`Inspector`](optimus_core::Inspector) begins with the name. Several workers may
    /// have the same name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Serves these queues, each with the same share. By default, a worker serves the queues of its
    /// tasks.
    pub fn queues<Q: AsRef<str>>(self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.serve(Order::Weighted, queues.into_iter().map(|queue| (queue, 1)))
    }

    /// Serves these queues, each with a share of the slots by its weight.
    ///
    /// While several queues have work, the worker starts tasks by weight in each second. A queue
    /// holds no more than its share of the slots, rounded up, so that the long tasks of one queue
    /// do not take the slots of the other queues. If a queue has no work for some of its slots, the
    /// other queues use them.
    pub fn weighted<Q: AsRef<str>>(self, queues: impl IntoIterator<Item = (Q, u32)>) -> Self {
        self.serve(Order::Weighted, queues)
    }

    /// Serves these queues in strict order. Each queue gets only the slots that the queues before
    /// it leave idle.
    pub fn strict<Q: AsRef<str>>(self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.serve(Order::Strict, queues.into_iter().map(|queue| (queue, 1)))
    }

    /// Sets how many tasks run at once. The default is 64.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.config.concurrency = concurrency;
        self
    }

    /// Sets how long a worker without heartbeats keeps its tasks, from 500 ms to a day. Default: 15
    /// s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// Sets how often the workers of a queue together poll it without a wakeup: from 10 ms to a
    /// day. The default is 5 s. If a wakeup is lost, the workers find its task after this time on
    /// average. If a queue has many workers, each worker polls it once in 60 intervals on average,
    /// or once in 12 intervals while at least half of its slots are busy.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.config.poll = poll;
        self
    }

    /// Sets how long a task that no worker knows is kept before it is marked Dead. The default is
    /// an hour.
    pub fn misfit_grace(mut self, grace: Duration) -> Self {
        self.config.misfit_grace = grace;
        self
    }

    /// Sets how many dead tasks each queue keeps at most, and for how long. The same limits apply
    /// to cancelled tasks. The defaults are 10,000 tasks and 180 days. The oldest tasks are removed
    /// first. A number above 0 removes no task that ended in the last hour, so that an operator can
    /// bring these back. A dead task that blocks its lane counts, and is not removed.
    pub fn keep_ended(mut self, tasks: usize, age: Duration) -> Self {
        let keep = &mut self.config.keep_ended;
        (keep.tasks, keep.age) = (tasks, age.min(ENDED_FOR_MAX));
        keep.recent = if tasks == 0 { Duration::ZERO } else { Keep::DEFAULT.recent };
        self
    }

    /// Sets how many bytes of dead tasks each queue keeps at most. The same limit applies to
    /// cancelled tasks. The default is 256 MiB. The bytes are those of records, arguments and error
    /// histories, without the overhead of Redis. The oldest tasks are removed first. A worker that
    /// purges tasks because of this limit logs a warning with their number. If workers have
    /// different limits, the lowest one applies.
    pub fn keep_ended_bytes(mut self, bytes: u64) -> Self {
        self.config.keep_ended.bytes = bytes.min(ENDED_BYTES_MAX);
        self
    }

    /// Sets how long an unused queue is kept. The default is a day. A queue is unused if it has no
    /// task in any state, no worker, and no live client that has submitted to it. After this time,
    /// the queue is removed from [`Inspector::queues`](optimus_core::Inspector::queues), with the
    /// summaries of its last successes. The next submit creates the queue again. A paused queue is
    /// never removed, nor one with a history, also if that was stopped.
    ///
    /// Workers also remove unused queues that they do not serve, so one worker is enough for
    /// all queues of the namespace.
    pub fn keep_unused_queues(mut self, age: Duration) -> Self {
        self.config.unused_for = age.min(ENDED_FOR_MAX);
        self
    }

    /// Sets how long a shutdown lets running tasks finish before it cancels them. Default: 25 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.shutdown_grace = grace.min(FOREVER);
        self
    }

    /// Sets the most bytes of a task's result, as JSON. The default is 1 MiB. A task with a larger
    /// result ends Dead with [`Reason::ResultTooLarge`](optimus_core::Reason::ResultTooLarge),
    /// because another attempt would not help. A result that is not kept (`result_ttl` of zero) may
    /// have any size. Redis accepts results up to its setting `proto-max-bulk-len`, whose default
    /// is 512 MiB. A worker reads this setting at its start.
    pub fn result_limit(mut self, bytes: usize) -> Self {
        self.config.result_limit = SizeLimit::new(bytes, "WorkerBuilder::result_limit");
        self
    }

    /// Prints neither the worker's queues and tasks nor a hint about a missing `tracing` subscriber
    /// to stderr at the start. Warnings about the server are still printed.
    pub fn quiet(mut self) -> Self {
        self.config.banner = false;
        self
    }

    /// Logs each success at the level `INFO`. The default level is `DEBUG`. All other outcomes are
    /// always logged at `INFO` or above, and so is a summary of each minute.
    pub fn log_each(mut self) -> Self {
        self.config.success_level = Level::INFO;
        self
    }

    /// Adds a value for the `#[data]` parameters of its type.
    pub fn data<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.data.insert(value);
        self
    }

    /// Adds a layer inside the layers that were added before. The layer wraps each attempt of the
    /// worker, and each submit by a handler.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.add(layer);
        self
    }

    /// Serves the task of a `#[task]` function, whether `inventory` found the task or not.
    pub fn task<A, F: TaskFn<A>>(self, _function: F) -> Self {
        self.task_type::<F::Task>()
    }

    /// Serves a task that implements the trait without the macro.
    pub fn task_type<T: Task>(mut self) -> Self {
        self.tasks.push(TaskDefinition::of::<T>());
        self
    }

    /// Serves the shards of a `#[sharded]` function, whether `inventory` found the function or not.
    pub fn sharded(mut self, function: impl FnOnce() -> Sharded) -> Self {
        self.shardeds.push(function());
        self
    }

    /// Scans the source of a `#[source]` function, whether `inventory` found the function or not.
    pub fn source(mut self, function: impl FnOnce() -> Source) -> Self {
        self.sources.push(function());
        self
    }

    /// Scans no source: this worker only runs tasks, and other workers scan. A worker that only
    /// scans is the opposite: `.only_named_tasks()` and `.source(…)`.
    pub fn without_sources(mut self) -> Self {
        self.scans = false;
        self
    }

    /// Serves only the tasks that are named with [`task`](Self::task), and the sharded functions
    /// and sources that are named with [`sharded`](Self::sharded) and [`source`](Self::source), and
    /// not all that are linked in.
    pub fn only_named_tasks(mut self) -> Self {
        self.inventory = false;
        self
    }

    /// Checks everything that can be checked without Redis.
    ///
    /// # Errors
    /// [`Error::is_invalid`]: two tasks have one name, the data of a handler is missing, an option
    /// is invalid, or the worker has neither a task nor a sharded function.
    pub fn build(self) -> Result<Worker, Error> {
        let without_effect = self.environment.without_effect(&self);
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut config = Config { without_effect, ..self.config };
        config.check()?;
        let linked = TaskDefinition::registered().filter(|_| self.inventory);
        let shardeds = Sharded::registered().filter(|_| self.inventory).chain(self.shardeds);
        let shardeds = Shardeds::new(shardeds, &self.data)?;
        let registry = Registry::new(linked.chain(self.tasks))?;
        let known = Source::registered().chain(self.sources.iter().copied());
        let linked = Source::registered().filter(|_| self.inventory);
        let scanned = linked.chain(self.sources.iter().copied()).filter(|_| self.scans);
        let sources = SourceList::new(scanned, known, &self.data)?;
        registry.check_served(&shardeds, &sources)?;
        registry.check(&self.data, &self.layers.provide()?)?;
        let served: Vec<QueueName> = config.queues.iter().map(|(name, _)| name.clone()).collect();
        let unused = self.environment.unused_queues(&served, &registry.queues()?);
        config.without_effect.extend(unused);
        if config.queues.is_empty() {
            config.queues = registry.queues()?.into_iter().map(|queue| (queue, 1)).collect();
        }
        let given = (self.data, self.layers, self.services);
        Ok(Worker::new(config, (registry, shardeds, sources), given))
    }

    /// Builds the worker and runs it until SIGTERM or SIGINT: see [`Worker::run`].
    ///
    /// # Errors
    /// The errors of [`build`](Self::build) and of [`Worker::run`].
    pub async fn run(self) -> Result<(), Error> {
        self.build()?.run().await
    }

    /// Replaces the queues that were named before, including those of the environment.
    /// [`build`](Self::build) reports an invalid name, so that calls can be chained.
    fn serve<Q: AsRef<str>>(
        mut self,
        order: Order,
        queues: impl IntoIterator<Item = (Q, u32)>,
    ) -> Self {
        self.config.order = order;
        self.config.queues.clear();
        for (queue, weight) in queues {
            match QueueName::new(queue.as_ref()) {
                Ok(queue) => self.config.queues.push((queue, weight)),
                Err(problem) => self.problem = Some(problem.into()),
            }
        }
        if self.config.queues.is_empty() && self.problem.is_none() {
            self.problem = Some(Error::invalid(
                "worker: the list of queues is empty; name a queue, or call none of .queues, \
                 .weighted and .strict to serve the queues of the tasks",
            ));
        }
        self
    }
}

impl WithService for WorkerBuilder {
    fn service(mut self, service: Service) -> Self {
        self.services.push(service);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_of_queues_is_refused() {
        let none: [&str; 0] = [];
        let weighted = none.iter().map(|queue| (*queue, 1));
        let builder = || WorkerBuilder::new("redis://x");
        for builder in
            [builder().queues(none), builder().weighted(weighted), builder().strict(none)]
        {
            let problem = builder.build().err().unwrap();
            assert!(problem.to_string().contains("the list of queues is empty"), "{problem}");
        }
    }

    #[test]
    fn a_worker_without_tasks_does_not_start_and_its_error_shows_how_to_link_them() {
        let problem = WorkerBuilder::new("redis://x").build().err().unwrap();
        assert!(problem.to_string().contains("as _;"), "{problem}");
    }
}
