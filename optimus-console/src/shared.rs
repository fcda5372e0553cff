//! What all requests share: [`Shared`].

use std::sync::Arc;

use optimus_core::{Client, Inspector};
use tokio::sync::Mutex;

use crate::{
    access::{Auth, Identity, Payloads, Sessions},
    carrying::Carrying,
    known_tasks::KnownTasks,
    sampling::Sampling,
    stats_of_all::StatsOfAll,
};

/// The state of the router.
pub(crate) type App = Arc<Shared>;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) auth: Auth,
    /// The name of people whom a console without authentication does not know.
    pub(crate) nobody: String,
    pub(crate) sessions: Sessions,
    /// By the number of the role.
    pub(crate) payloads: [Payloads; 3],
    pub(crate) hosts: Vec<String>,
    pub(crate) trusts_prefix: bool,
    pub(crate) carrying: Carrying,
    pub(crate) sampling: Sampling,
    pub(crate) stats_of_all: StatsOfAll,
    pub(crate) known_tasks: Mutex<KnownTasks>,
}

impl Shared {
    pub(crate) fn inspector(&self) -> Inspector {
        self.client.inspector()
    }

    pub(crate) fn payloads_of(&self, identity: &Identity) -> Payloads {
        self.payloads[identity.role as usize]
    }
}
