//! The private Redis server of all measurements.

use std::path::Path;

use optimus_testkit::RedisServer;

use crate::agent::protocol::queue_names;
use crate::probe::Probe;

/// A private Redis on a port of the loopback interface. It ends when this value is dropped.
pub(crate) struct BenchRedis {
    server: RedisServer,
    probe: Probe,
    persistence: Persistence,
}

/// The key of the tasks in the queue that a load of one queue uses.
const TASKS: &str = "{optimus:bench:0}:tasks";

/// The persistence of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Redis writes nothing to disk.
    None,
    /// Redis writes each command, and syncs once a second.
    Aof,
}

impl BenchRedis {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// When the server accepts no connection.
    pub(crate) fn start(persistence: Persistence) -> anyhow::Result<Self> {
        let mut options = RedisServer::builder().tcp();
        if persistence == Persistence::Aof {
            options = options.arg("--appendonly", "yes").arg("--appendfsync", "everysec");
        }
        let server = options.start();
        let probe = Probe::connect(&server.url())?;
        Ok(Self { server, probe, persistence })
    }

    /// Returns `redis://127.0.0.1:<port>/`.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the folder of the server's files. The folder is removed when the server ends.
    pub(crate) fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// Returns the connection that reads the server's counters.
    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Returns the number of tasks in all states except success, in the queues of a load.
    ///
    /// # Errors
    ///
    /// When Redis does not reply.
    pub(crate) fn tasks_in(&self, queues: usize) -> anyhow::Result<u64> {
        let hashes =
            queue_names(queues).into_iter().map(|queue| format!("{{optimus:{queue}:0}}:tasks"));
        self.probe.fields_of(&hashes.collect::<Vec<_>>())
    }

    /// Looks up an absent task so often that Redis has resized a table of this many fields. Redis
    /// moves a part of a growing table with each lookup.
    ///
    /// # Errors
    ///
    /// When Redis does not reply.
    pub(crate) fn finish_moving(&self, fields: u64) -> anyhow::Result<()> {
        const LOOKUPS: u64 = 100_000;
        let script = format!("for i = 1, {LOOKUPS} do redis.call('HEXISTS', KEYS[1], '') end");
        for _ in 0..fields.div_ceil(LOOKUPS) {
            self.probe.command::<()>(&["EVAL", &script, "1", TASKS])?;
        }
        Ok(())
    }

    /// Returns the persistence of the server.
    pub(crate) fn persistence(&self) -> Persistence {
        self.persistence
    }
}
