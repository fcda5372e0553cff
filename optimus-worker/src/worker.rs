//! The process that runs tasks: [`Worker`].

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use optimus_core::{
    Data, Error, WorkerDescription, WorkerId,
    broker::{Broker, Endpoint},
    machine,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    WorkerBuilder,
    attempts::Attempts,
    claimer::Claimer,
    config::Config,
    keeper::Keeper,
    ledgers::Ledgers,
    queues::{Queues, Served},
    registry::Registry,
    reporter::Reporter,
    role::{play, supervise},
    shared::Shared,
    shutdown::Shutdown,
    sign_off,
    slots::Slots,
    suspects::Suspects,
    wakeups::Wakeups,
};

/// How long the claimer's last turn is waited for.
const LAST_TURN: Duration = Duration::from_secs(1);

/// Runs tasks: as many at once as it has slots, from the queues it serves.
pub struct Worker {
    config: Config,
    registry: Registry,
    data: Data,
}

impl Worker {
    /// A worker for the store at `url`: `redis://…`, `unix://…`, or `memory://name` beside a client
    /// of the same process.
    pub fn builder(url: &str) -> WorkerBuilder {
        WorkerBuilder::new(url)
    }

    /// A worker set up by the environment: `OPTIMUS_URL` (else `REDIS_URL`), `OPTIMUS_QUEUES`
    /// (`critical=3,default` by weight or `critical>default` strictly), `OPTIMUS_CONCURRENCY`.
    ///
    /// # Errors
    /// [`Error::is_invalid`], saying what to set.
    pub fn from_env() -> Result<WorkerBuilder, Error> {
        WorkerBuilder::from_env(|name| std::env::var(name).ok())
    }

    pub(crate) fn new(config: Config, registry: Registry, data: Data) -> Self {
        Self { config, registry, data }
    }

    /// Runs until SIGTERM or SIGINT, then lets running tasks finish (see
    /// [`WorkerBuilder::shutdown_grace`]) and gives back the rest. A second signal skips the wait.
    ///
    /// # Errors
    /// [`Error::is_unavailable`], [`Error::is_unauthorized`] if Redis can't be reached at the
    /// start; after that an outage is waited out. [`Error::is_broken`] if a part of the worker
    /// panicked.
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(first_signal()?).await
    }

    /// As [`run`](Self::run), until `stop` resolves; returns what it resolves to.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until<T>(self, stop: impl Future<Output = T>) -> Result<T, Error> {
        let shared = self.start().await?;
        let keeper = Keeper::start(shared.clone())
            .map_err(|problem| Error::invalid(format!("the keeper's thread: {problem}")))?;
        let ended = CancellationToken::new();
        let _guard = ended.clone().drop_guard();
        let mut claimer = tokio::spawn(claim_until(shared.clone(), ended.clone()));
        let output = tokio::select! {
            biased;
            output = stop => Ok(output),
            why = shared.shutdown.failed() => Err(Error::broken(why)),
        };
        let hurry = tokio::spawn(hurry_on_second_signal(shared.shutdown.clone()));
        shared.shutdown.run(&shared).await;
        hurry.abort();
        ended.cancel();
        // What its last turn was granted and did not hear of is given back at the end.
        if tokio::time::timeout(LAST_TURN, &mut claimer).await.is_err() {
            claimer.abort();
            drop(claimer.await);
        }
        keeper.stop().await;
        sign_off::leave(&shared).await;
        tracing::info!("stopped");
        output
    }

    pub(crate) async fn start(self) -> Result<Arc<Shared>, Error> {
        let endpoint = Endpoint::parse(&self.config.url)?;
        let broker = Broker::new(endpoint, &self.config.namespace, "worker");
        broker.within(Duration::ZERO).ping().await?;
        let facts = broker.server_facts().await?;
        if let Some(why) = facts.refusal() {
            return Err(Error::rejected(why));
        }
        for warning in facts.warnings() {
            tracing::error!("{warning}");
            if !self.config.banner {
                eprintln!("optimus: warning: {warning}");
            }
        }
        let worker = new_worker_id();
        let wakeups = Arc::new(Wakeups::default());
        let served = |(name, weight)| Served::new(name, weight, worker.clone(), wakeups.clone());
        let queues: Vec<Served> = self.config.queues.iter().cloned().map(served).collect();
        check_permissions(&broker, &queues, &worker).await?;
        let description = describe(&self.config, &self.registry);
        let registered_at = Instant::now();
        for queue in &queues {
            let registered =
                broker.register(&queue.name, &worker, self.config.lease, &description).await?;
            queue.renewed(registered_at);
            queue.set_next_expiry(registered.next_expiry);
            // A queue without a task yet is seen by inspectors all the same.
            broker.announce(&queue.name).await.or_else(|problem| match problem {
                optimus_core::broker::BrokerError::Full => Ok(()),
                other => Err(other),
            })?;
        }
        if self.config.banner {
            eprintln!("{}", banner(&self.config, &self.registry, &broker, &worker));
            if !broker.endpoint().is_memory() {
                facts.to_string().lines().for_each(|line| eprintln!("  {line}"));
            }
        }
        let slots = Slots::new(self.config.concurrency, queues.len(), wakeups.clone());
        Ok(Arc::new(Shared {
            config: self.config,
            registry: self.registry,
            data: Arc::new(self.data),
            maintenance: broker.separate("maintenance"),
            broker,
            queues: Queues::new(queues),
            attempts: Attempts::new(wakeups.clone()),
            reporter: Reporter::new(wakeups.clone()),
            slots,
            threads: Arc::default(),
            shutdown: Shutdown::default(),
            description,
            ledgers: Ledgers::new(),
            suspects: Suspects::default(),
            wakeups,
        }))
    }
}

/// Names what Redis does not let its user do, before anything is written.
async fn check_permissions(
    broker: &Broker,
    queues: &[Served],
    worker: &WorkerId,
) -> Result<(), Error> {
    let Some(queue) = queues.first().filter(|_| !broker.endpoint().is_memory()) else {
        return Ok(());
    };
    let missing = broker.missing_permissions(&queue.name, worker).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::rejected(format!(
        "the Redis user may not do what a worker needs; add this to its ACL: {}",
        missing.join(" ")
    )))
}

async fn claim_until(shared: Arc<Shared>, ended: CancellationToken) {
    let claiming = play(Claimer::new(shared.clone()), &shared.wakeups.claimer, &ended);
    supervise("claimer", &shared.shutdown, claiming).await;
}

/// Never used twice: every start of a process, and every lost lease, takes a new one.
pub(crate) fn new_worker_id() -> WorkerId {
    WorkerId::generate(&machine::host(), machine::process_id())
}

fn describe(config: &Config, registry: &Registry) -> String {
    let since_epoch = machine::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let description = WorkerDescription {
        host: machine::host(),
        pid: machine::process_id(),
        started_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        queues: config.queues.iter().map(|(name, _)| name.to_string()).collect(),
        concurrency: config.concurrency,
        tasks: registry.iter().map(|task| task.name().to_owned()).collect(),
    };
    serde_json::to_string(&description).expect("plain fields")
}

fn banner(config: &Config, registry: &Registry, broker: &Broker, worker: &WorkerId) -> String {
    let queues: Vec<String> = config.queues.iter().map(|(name, _)| name.to_string()).collect();
    let mut lines = vec![format!(
        "optimus worker {worker} on {}: {} slots, queues: {}",
        broker.endpoint().describe(),
        config.concurrency,
        queues.join(", ")
    )];
    for task in registry.iter() {
        let queue = task.options().queue_name();
        let served = if queues.iter().any(|q| q == queue) { "" } else { ", not served here" };
        lines.push(format!("  {} (queue {queue}{served})", task.name()));
    }
    lines.join("\n")
}

async fn hurry_on_second_signal(shutdown: Shutdown) {
    #[cfg(feature = "simulation")]
    if machine::is_simulated() {
        return;
    }
    if let Ok(signal) = first_signal() {
        signal.await;
        shutdown.hurry();
    }
}

#[cfg(unix)]
fn first_signal() -> Result<impl Future<Output = ()>, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |problem: std::io::Error| Error::invalid(format!("signals: {problem}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn first_signal() -> Result<impl Future<Output = ()>, Error> {
    Ok(async {
        drop(tokio::signal::ctrl_c().await);
    })
}
