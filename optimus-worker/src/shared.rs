//! What all roles of one worker share: [`Shared`].

use std::sync::Arc;

use optimus_core::{Data, broker::Broker};
use tokio::sync::Notify;

use crate::{
    attempts::Attempts, config::Config, queues::Queues, registry::Registry, reporter::Reporter,
    shutdown::Shutdown, slots::Slots, suspects::Suspects,
};

/// One worker process.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) data: Arc<Data>,
    /// The connection of the claimer's turns.
    pub(crate) broker: Broker,
    /// The connection of all roles on the keeper's thread.
    pub(crate) maintenance: Broker,
    pub(crate) queues: Queues,
    pub(crate) attempts: Attempts,
    pub(crate) reporter: Reporter,
    pub(crate) slots: Arc<Slots>,
    pub(crate) suspects: Suspects,
    pub(crate) shutdown: Shutdown,
    /// How the worker describes itself to each queue, as JSON.
    pub(crate) description: String,
    /// Wakes the claimer: a slot is free, a report waits, or a queue may have work.
    pub(crate) turn: Arc<Notify>,
    /// Wakes who waits for the doorbell: a queue was found empty, or a slot is free.
    pub(crate) listen: Arc<Notify>,
    /// Wakes the heartbeat ahead of its time.
    pub(crate) beat: Notify,
    /// Wakes the reaper: the next expiry has changed.
    pub(crate) reap: Notify,
}
