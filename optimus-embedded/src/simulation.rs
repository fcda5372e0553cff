//! The interface for a simulation: a gate in front of the store, an observer of its scripts, a
//! clock that is independent of the machine, and copies of the keys.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use indexmap::IndexMap;
use redis::{Pipeline, RedisFuture, Value};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::connection::Connection;
use crate::keyspace::Entry;
use crate::number;
use crate::store::{NAMED, Store};
use crate::value::{Bytes, Data};

/// A gate takes the place of the network. All commands of one process to the store pass through it.
pub trait Gate: Send + Sync {
    /// Carries commands to the store, over the connection behind the gate, and returns the replies
    /// to `count` commands after the first `offset`. It may lose the commands or the replies.
    fn carry<'a>(
        &'a self,
        behind: Connection,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>>;
}

/// Observes each `redis.call` of each script before the call.
pub trait Observer: Send + Debug {
    /// Called when a script with this hash begins.
    fn begins(&mut self, sha: &str);

    /// Called before a script calls a command. If this function returns an error, with its code
    /// first, the error replaces the command's reply.
    fn before(&mut self, call: &RedisCall<'_>) -> Option<String>;
}

/// One `redis.call` of a script.
#[derive(Clone, Copy, Debug)]
pub struct RedisCall<'a> {
    /// The line of the call in the text of the script, counted from 1.
    pub line: usize,
    /// Whether the command writes.
    pub writes: bool,
    /// Whether the script has already called a writing command.
    pub wrote: bool,
    /// The command, with its name first.
    pub arguments: &'a [Vec<u8>],
}

/// A clock that shows Tokio's time, paused or not, as a time of day. It can be set.
#[derive(Debug)]
pub struct VirtualTime {
    origin: Instant,
    start_us: u64,
    set_by_us: AtomicI64,
}

impl VirtualTime {
    /// Returns a clock that shows `start_ms` since the epoch now, and continues from there.
    pub fn starting_at(start_ms: u64) -> Arc<Self> {
        let set_by_us = AtomicI64::new(0);
        Arc::new(Self { origin: Instant::now(), start_us: start_ms * 1000, set_by_us })
    }

    /// Moves the clock forward or backward by this many ms.
    pub fn set_by_ms(&self, by_ms: i64) {
        self.set_by_us.fetch_add(by_ms * 1000, Ordering::Relaxed);
    }

    /// Returns the time of the clock, in µs since the epoch.
    pub fn now_us(&self) -> u64 {
        let passed = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.start_us
            .saturating_add(passed)
            .saturating_add_signed(self.set_by_us.load(Ordering::Relaxed))
    }

    /// Returns the same clock for a store.
    pub fn clock(self: &Arc<Self>) -> Clock {
        Clock::of(self.clone())
    }
}

/// All keys of a store at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    entries: IndexMap<Bytes, Entry>,
    expiries: BTreeSet<(u64, Bytes)>,
}

/// The value of a key, in a readable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A string.
    Text(Vec<u8>),
    /// A list, in its order.
    List(Vec<Vec<u8>>),
    /// The fields and values of a hash, or the members and scores of a sorted set.
    Pairs(Vec<(Vec<u8>, Vec<u8>)>),
    /// The members of a set.
    Set(Vec<Vec<u8>>),
}

/// A key, its value, and its remaining ms. `None` if the key does not expire.
pub type KeyView = (Vec<u8>, Content, Option<u64>);

impl Store {
    /// Returns the same store behind the gate of one process.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        let mut store = self.clone();
        store.gate = Some(gate);
        store
    }

    /// Returns the same store without a gate.
    #[must_use]
    pub fn ungated(&self) -> Self {
        let mut store = self.clone();
        store.gate = None;
        store
    }

    /// Makes this the store of `memory://name`, until it is [withdrawn](Self::withdraw).
    pub fn publish(&self, name: &str) {
        let mut stores = NAMED.lock().expect("no code panics while it holds the named stores");
        stores.insert(name.to_owned(), self.clone());
    }

    /// Removes the store with this name.
    pub fn withdraw(name: &str) {
        NAMED.lock().expect("no code panics while it holds the named stores").remove(name);
    }

    /// Shows each `redis.call` from now on to this observer.
    pub fn observe(&self, observer: impl Observer + 'static) {
        self.engine().keyspace.observer = Some(Box::new(observer));
    }

    /// Forgets all scripts, as SCRIPT FLUSH does.
    pub fn forget_scripts(&self) {
        self.engine().vm.flush();
    }

    /// Returns a copy of all keys.
    pub fn snapshot(&self) -> Snapshot {
        let keyspace = &self.engine().keyspace;
        Snapshot { entries: keyspace.entries.clone(), expiries: keyspace.expiries.clone() }
    }

    /// Restores the keys from a copy. Clients that wait for a list continue to wait.
    pub fn restore(&self, snapshot: Snapshot) {
        let keyspace = &mut self.engine().keyspace;
        keyspace.entries = snapshot.entries;
        keyspace.expiries = snapshot.expiries;
    }

    /// Returns every key that has not expired, with its value.
    pub fn view(&self) -> Vec<KeyView> {
        let keyspace = &mut self.engine().keyspace;
        keyspace.begin();
        let now_ms = keyspace.now_ms();
        let view = |(key, entry): (&Bytes, &Entry)| {
            let left = entry.expires_at_ms.map(|due_ms| due_ms.saturating_sub(now_ms));
            (key.clone(), content(&entry.data), left)
        };
        keyspace.entries.iter().map(view).collect()
    }
}

fn content(data: &Data) -> Content {
    match data {
        Data::String(text) => Content::Text(text.clone()),
        Data::List(items) => Content::List(items.iter().cloned().collect()),
        Data::Set(members) => Content::Set(members.iter().cloned().collect()),
        Data::Hash(hash) => Content::Pairs(
            hash.iter().map(|(field, value)| (field.clone(), value.clone())).collect(),
        ),
        Data::ZSet(zset) => Content::Pairs(
            zset.iter().map(|(member, score)| (member.to_vec(), number::score(score))).collect(),
        ),
    }
}
