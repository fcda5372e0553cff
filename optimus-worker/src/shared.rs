//! The state that all roles of one worker share: [`Shared`].

use std::sync::Arc;

use optimus_core::{Data, Layers, LogDesk, OwnClient, Threads, WorkerId, broker::Broker, log::Log};

use tokio::runtime::Handle;

use crate::{
    attempts::Attempts, collects::Collects, config::Config, ledger_retention::Ledgers,
    marked_dead::MarkedDead, posts::OpenPosts, process_stops::ProcessStops, quarantine::Quarantine,
    reporter::Reporter, role_wakeups::Wakeups, served_queues::Queues, services::Services,
    shard_registry::Shardeds, shutdown_state::Shutdown, slots::Slots, source_registry::Sources,
    tally::Tally, task_registry::Registry, task_tallies::TaskTallies,
};

/// The state that all roles of one worker share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) data: Arc<Data>,
    pub(crate) layers: Layers,
    /// The handlers' runtime.
    pub(crate) runtime: Handle,
    /// The connection of the claimer's turns.
    pub(crate) broker: Broker,
    /// The connection of all roles on the maintenance thread.
    pub(crate) maintenance: Broker,
    /// The log of the roles. The roles do not call the subscriber themselves.
    pub(crate) log: Log,
    pub(crate) queues: Queues,
    /// The sharded functions that the worker serves.
    pub(crate) shardeds: Shardeds,
    /// The sources that the worker knows.
    pub(crate) sources: Arc<Sources>,
    /// The connection of the rounds of shards.
    pub(crate) shards_broker: Broker,
    /// The id of the worker in all rosters.
    pub(crate) member: WorkerId,
    pub(crate) posts: OpenPosts,
    pub(crate) services: Services,
    pub(crate) attempts: Attempts,
    /// The requests for the calls of runs.
    pub(crate) collects: Collects,
    pub(crate) marked_dead: MarkedDead,
    pub(crate) reporter: Reporter,
    pub(crate) slots: Arc<Slots>,
    /// The counts that [`Summary`](crate::summary::Summary) logs.
    pub(crate) tally: Tally,
    /// Where metrics and probes are served, and what they need.
    #[cfg(feature = "metrics")]
    pub(crate) metrics: crate::metrics_port::MetricsPort,
    /// The counts that [`TallyWriter`](crate::tally_writer::TallyWriter) adds to the statistics.
    pub(crate) task_tallies: TaskTallies,
    /// The lines that handlers say.
    pub(crate) log_desk: Arc<LogDesk>,
    /// The client for handlers that submit.
    pub(crate) client: Arc<OwnClient>,
    /// The runtime for handlers that block.
    pub(crate) threads: Arc<Threads>,
    pub(crate) quarantine: Quarantine,
    /// Whether the process was stopped.
    pub(crate) stops: ProcessStops,
    pub(crate) shutdown: Shutdown,
    /// The description that the worker gives to each queue, as JSON.
    pub(crate) description: String,
    pub(crate) ledgers: Ledgers,
    /// The events that each role waits for, and the roles that they wake.
    pub(crate) wakeups: Arc<Wakeups>,
}
