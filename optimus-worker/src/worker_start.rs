//! Starts a worker ([`start`]): checks its store, and registers the worker in each queue.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{Arc, Once},
    time::Duration,
};

use optimus_core::{
    Data, Error, Layers, LogDesk, OwnClient, RosterName, Service, Sharded, Source, TaskLimit,
    WorkerDescription, WorkerId,
    broker::{Broker, BrokerError, Endpoint},
    environment, log_event, platform,
};
use tokio::{runtime::Handle, time::Instant};

use crate::{
    attempts::Attempts,
    collects::Collects,
    config::{self, Config},
    declared_history,
    ledger_retention::Ledgers,
    marked_dead::MarkedDead,
    posts::OpenPosts,
    process_stops::ProcessStops,
    quarantine::Quarantine,
    reporter::Reporter,
    role_wakeups::Wakeups,
    served_queue::Served,
    served_queues::Queues,
    services::Services,
    shard_registry::Shardeds,
    shared::Shared,
    shutdown_state::Shutdown,
    slots::Slots,
    source_layer::SourceLayer,
    source_registry::{SourceList, Sources},
    store_risks::StoreRisks,
    tally::Tally,
    task_registry::Registry,
    task_tallies::TaskTallies,
};

/// Whether the hint was printed. A process prints it once, for any number of workers.
static HINT: Once = Once::new();
const NO_SUBSCRIBER: &str = "  no tracing subscriber is installed, so nothing is logged; to see \
                             the log, call `tracing_subscriber::fmt().init()` before the worker \
                             starts";

/// Starts a worker up to its registration. Its roles do not run yet.
pub(crate) async fn start(
    mut config: Config,
    (registry, shardeds, source_list): (Registry, Shardeds, SourceList),
    (data, layers, services): (Data, Layers, Vec<Service>),
) -> Result<Arc<Shared>, Error> {
    #[cfg(feature = "metrics")]
    let metrics = crate::metrics_port::MetricsPort::open(&config)?;
    let endpoint = Endpoint::with_credentials(&config.url, config.credentials.take())?;
    let broker = Broker::new(endpoint, &config.namespace, "worker");
    let risks = check_server(&broker).await?;
    config.result_limit = broker.size_limit(config.result_limit).await?;
    let worker = new_worker_id(&config);
    let wakeups = Arc::new(Wakeups::default());
    let queues = served_queues(&config, &worker, &wakeups);
    check_permissions(&broker, (&queues, &shardeds, &source_list), &worker).await?;
    let description = describe(&config, &registry);
    let client = OwnClient::here(&broker, layers.clone());
    let services = Services::start(services, &client).await?;
    register(&broker, (&queues, &registry), (&worker, config.lease, &description)).await?;
    if config.banner {
        print(&banner(&config, &registry, &broker, &worker));
        shardeds.iter().for_each(|sharded| print(&shards_line(sharded)));
        services.names().iter().for_each(|name| print(&format!("  {name}")));
        source_list.scanned().for_each(|source| print(&source_line(source)));
        risks.for_banner.iter().for_each(|line| print(line));
        if !broker.log().is_heard() {
            HINT.call_once(|| print(NO_SUBSCRIBER));
        }
    } else {
        risks.for_quiet.iter().for_each(|line| print(line));
    }
    log_start(&broker, &config, &registry, &worker);
    let shards_broker = broker.separate("shards");
    let sources = Arc::new(Sources::new(&source_list, &shards_broker)?);
    Ok(Arc::new(Shared {
        slots: Slots::new(config.concurrency, queues.len(), wakeups.clone()),
        stops: ProcessStops::of_lease(config.lease),
        config,
        registry,
        data: Arc::new(data),
        maintenance: broker.separate("maintenance"),
        log: broker.log().clone(),
        shutdown: Shutdown::new(broker.log().clone()),
        reporter: Reporter::new(wakeups.clone(), broker.log().clone()),
        client,
        layers: with_sources(layers, &sources, &broker),
        sources,
        runtime: Handle::current(),
        broker: broker.clone(),
        task_tallies: TaskTallies::new(queues.len()),
        queues: Queues::new(queues),
        shardeds,
        shards_broker,
        member: worker,
        posts: OpenPosts::default(),
        services,
        attempts: Attempts::new(wakeups.clone()),
        marked_dead: MarkedDead::default(),
        collects: Collects::default(),
        tally: Tally::default(),
        #[cfg(feature = "metrics")]
        metrics,
        log_desk: log_desk(&wakeups),
        threads: Arc::default(),
        description,
        ledgers: Ledgers::new(),
        quarantine: Quarantine::default(),
        wakeups,
    }))
}

fn served_queues(config: &Config, worker: &WorkerId, wakeups: &Arc<Wakeups>) -> Vec<Served> {
    let served = |(name, weight)| Served::new(name, weight, worker.clone(), wakeups.clone());
    config.queues.iter().cloned().map(served).collect()
}

fn log_desk(wakeups: &Arc<Wakeups>) -> Arc<LogDesk> {
    let said = wakeups.clone();
    Arc::new(LogDesk::new(move || said.line_said()))
}

fn log_start(broker: &Broker, config: &Config, registry: &Registry, worker: &WorkerId) {
    let (worker, store) = (worker.clone(), broker.endpoint().describe());
    let (slots, queues) = (config.concurrency, config::describe(config.order, &config.queues));
    log_event!(broker.log(), INFO, %worker, store, slots, queues, "the worker has started");
    if serves_none(config, registry) {
        log_event!(broker.log(), WARN, "{SERVES_NONE}");
    }
    for text in config.without_effect.clone().into_iter().filter(|text| environment::is_new(text)) {
        log_event!(broker.log(), WARN, "{text}");
    }
}

/// Prints a line to stderr. If stderr is closed, the line is dropped.
fn print(line: &str) {
    writeln!(io::stderr(), "{line}").ok();
}

/// Refuses a server that can't be used, and warns of one that may lose tasks.
async fn check_server(broker: &Broker) -> Result<StoreRisks, Error> {
    broker.within(Duration::ZERO).ping().await?;
    let facts = broker.server_facts().await?;
    if let Some(why) = facts.refusal() {
        return Err(Error::rejected(why));
    }
    Ok(StoreRisks::tell(broker, &facts))
}

/// Returns an error with the permissions that the Redis user lacks, before anything is written.
async fn check_permissions(
    broker: &Broker,
    (queues, shardeds, sources): (&[Served], &Shardeds, &SourceList),
    worker: &WorkerId,
) -> Result<(), Error> {
    let of_source = sources.scanned().find_map(|source| RosterName::sources(source.name()).ok());
    let roster = shardeds.iter().find_map(|sharded| RosterName::shards(sharded.name()).ok());
    let roster = roster.or(of_source);
    let slot = queues.first().map(|queue| &queue.name).or(roster.as_ref().map(RosterName::slot));
    let Some(slot) = slot.filter(|_| !broker.endpoint().is_memory()) else {
        return Ok(());
    };
    let missing = broker.missing_permissions(slot, worker).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::rejected(format!(
        "the Redis user lacks permissions that a worker needs; add this to its ACL: {}",
        missing.join(" ")
    )))
}

async fn register(
    broker: &Broker,
    (queues, registry): (&[Served], &Registry),
    (worker, lease, description): (&WorkerId, Duration, &str),
) -> Result<(), BrokerError> {
    let registered_at = Instant::now();
    for queue in queues {
        let registered = broker.register(&queue.name, worker, lease, description).await?;
        queue.registered(registered_at, lease);
        queue.set_next_expiry(registered.next_expiry);
        // With this, inspectors list the queue before it has a task.
        broker.announce(&queue.name).await.or_else(|problem| match problem {
            BrokerError::Full => Ok(()),
            other => Err(other),
        })?;
        declared_history::keep(broker, registry, &queue.name).await?;
    }
    Ok(())
}

/// Returns a new id. An id is never used twice: each start of a process and each lost lease leads
/// to a new one.
pub(crate) fn new_worker_id(config: &Config) -> WorkerId {
    let name = config.name.clone().unwrap_or_else(platform::host);
    WorkerId::generate(&name, platform::process_id())
}

fn describe(config: &Config, registry: &Registry) -> String {
    let description = WorkerDescription {
        name: config.name.clone(),
        host: platform::host(),
        pid: platform::process_id(),
        started: platform::instant(platform::now_ms()),
        queues: config.queues.iter().map(|(name, _)| name.to_string()).collect(),
        concurrency: config.concurrency,
        tasks: registry.iter().map(|task| task.name().to_owned()).collect(),
        limits: declared_limits(registry),
    };
    serde_json::to_string(&description).expect("plain fields")
}

fn declared_limits(registry: &Registry) -> BTreeMap<String, Vec<TaskLimit>> {
    let mut limits: BTreeMap<String, Vec<TaskLimit>> = BTreeMap::new();
    for task in registry.iter() {
        let options = task.options();
        if let Some(limit) = TaskLimit::declared(task.name(), &options) {
            limits.entry(options.queue_name().to_owned()).or_default().push(limit);
        }
    }
    limits
}

const SERVES_NONE: &str = "this worker serves none of the queues of its tasks, so it runs only \
                           calls that name one of its queues";

fn is_served(config: &Config, queue: &str) -> bool {
    config.queues.iter().any(|(name, _)| name.as_str() == queue)
}

fn serves_none(config: &Config, registry: &Registry) -> bool {
    registry.iter().next().is_some()
        && !registry.iter().any(|task| is_served(config, task.options().queue_name()))
}

fn shards_line(sharded: &Sharded) -> String {
    format!(
        "  {} ({} shards, unless Redis has another number)",
        sharded.name(),
        sharded.options().shards
    )
}

/// Returns the layers around attempts: those of the program, and inside them the hooks of sources.
fn with_sources(mut layers: Layers, sources: &Arc<Sources>, broker: &Broker) -> Layers {
    if !sources.is_empty() {
        layers.add(SourceLayer { sources: sources.clone(), log: broker.log().clone() });
    }
    layers
}

/// Returns the line of the banner about one source.
fn source_line(source: &Source) -> String {
    let options = source.options();
    let slices = if options.slices == 1 { "slice" } else { "slices" };
    format!(
        "  {} (a source in {} {slices}, read every {:?})",
        source.name(),
        options.slices,
        options.tiers[0].every
    )
}

fn banner(config: &Config, registry: &Registry, broker: &Broker, worker: &WorkerId) -> String {
    let mut lines = vec![format!(
        "optimus worker {worker} on {}: {} {}, queues: {}",
        broker.endpoint().describe(),
        config.concurrency,
        if config.concurrency == 1 { "slot" } else { "slots" },
        config::describe(config.order, &config.queues)
    )];
    for task in registry.iter() {
        let queue = task.options().queue_name();
        let served = if is_served(config, queue) { "" } else { ", not served here" };
        lines.push(format!("  {} (queue {queue}{served})", task.name()));
    }
    if serves_none(config, registry) {
        lines.push(format!("  warning: {SERVES_NONE}"));
    }
    lines.join("\n")
}
