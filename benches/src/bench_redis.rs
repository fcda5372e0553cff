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

/// The tasks of the queue that a load of one queue is in.
const TASKS: &str = "{optimus:bench:0}:tasks";

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

    /// Looks for nothing among the tasks so often that Redis, which moves a part of a growing table
    /// with each look, has moved a table of so many fields.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub(crate) fn finish_moving(&self, fields: u64) -> anyhow::Result<()> {
        const LOOKS: u64 = 100_000;
        let script = format!("for i = 1, {LOOKS} do redis.call('HEXISTS', KEYS[1], '') end");
        for _ in 0..fields.div_ceil(LOOKS) {
            self.probe.command::<()>(&["EVAL", &script, "1", TASKS])?;
        }
        Ok(())
    }

    /// What it writes to disk.
    pub(crate) fn persistence(&self) -> Persistence {
        self.persistence
    }
}
