//! The store: one keyspace that all handles of the store share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::engine::Engine;

pub(crate) static NAMED: LazyLock<Mutex<HashMap<String, Store>>> = LazyLock::new(Mutex::default);

/// Whether a store has room for more data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// The store accepts every command.
    Free,
    /// The store refuses commands that need memory.
    Full,
}

/// An in-process keyspace with its Lua VM. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    #[cfg(feature = "simulation")]
    pub(crate) gate: Option<Arc<dyn crate::simulation::Gate>>,
}

struct Shared {
    engine: Mutex<Engine>,
    clock: Clock,
    last_client: AtomicU64,
}

impl Store {
    /// Returns the store with this name, which the whole process shares.
    ///
    /// The first use creates the store. It uses the system clock and keeps its keys until the
    /// process ends, like a server. So a client can submit and end, and a later worker finds the
    /// tasks.
    pub fn named(name: &str) -> Self {
        let mut stores = NAMED.lock().expect("no code panics while it holds the named stores");
        stores.entry(name.to_owned()).or_insert_with(|| Self::new(Clock::system())).clone()
    }

    /// Returns a private store. It is freed with its last clone and connection.
    pub fn new(clock: Clock) -> Self {
        let engine = Mutex::new(Engine::new(clock.clone()));
        Self {
            shared: Arc::new(Shared { engine, clock, last_client: AtomicU64::new(0) }),
            #[cfg(feature = "simulation")]
            gate: None,
        }
    }

    /// Returns a new connection, with its own client id.
    pub fn connection(&self) -> Connection {
        Connection::new(self.clone(), self.shared.last_client.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the clock of this store.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Makes the store behave like a server at its `maxmemory`, or ends this behaviour.
    ///
    /// A full store refuses each command that needs memory with `OOM`. In a script, it refuses such
    /// a command only before the first write. So a script that begins with a removal runs to its
    /// end.
    pub fn set_room(&self, room: Room) {
        self.engine().keyspace.full = room == Room::Full;
    }

    /// Locks the store, and returns its state.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.shared.engine.lock().expect("a command does not panic; a panic is a bug of this crate")
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("clock", &self.shared.clock).finish_non_exhaustive()
    }
}
