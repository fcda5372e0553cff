//! The private Redis server that everything is measured on.

use std::path::Path;

use optimus_testkit::RedisServer;

use crate::agent::protocol::queue_names;
use crate::probe::Probe;

/// A Redis of our own, on a port of the loopback interface; it ends with this value.
pub(crate) struct BenchRedis {
    server: RedisServer,
    probe: Probe,
    persistence: Persistence,
}

/// What Redis writes to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing.
    None,
    /// Each command, synced once a second.
    Aof,
}

impl BenchRedis {
    /// Starts a server.
    ///
    /// # Errors
    /// When it takes no connection.
    pub(crate) fn start(persistence: Persistence) -> anyhow::Result<Self> {
        let mut options = RedisServer::builder().tcp();
        if persistence == Persistence::Aof {
            options = options.arg("--appendonly", "yes").arg("--appendfsync", "everysec");
        }
        let server = options.start();
        let probe = Probe::connect(&server.url())?;
        Ok(Self { server, probe, persistence })
    }

    /// `redis://127.0.0.1:<port>/`.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// The folder of its files, removed when it ends.
    pub(crate) fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// The connection that reads its counters.
    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    /// How many tasks there are, in whatever state but success, in the queues of a load.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub(crate) fn tasks_in(&self, queues: usize) -> anyhow::Result<u64> {
        let hashes =
            queue_names(queues).into_iter().map(|queue| format!("{{optimus:{queue}:0}}:tasks"));
        self.probe.fields_of(&hashes.collect::<Vec<_>>())
    }

    /// What it writes to disk.
    pub(crate) fn persistence(&self) -> Persistence {
        self.persistence
    }
}
