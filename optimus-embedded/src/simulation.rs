//! What a simulation needs of the store: a gate before it, an observer in it, time without a
//! machine, and copies of its keys.

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

/// Stands where the network is: all that one process asks of the store passes here.
pub trait Gate: Send + Sync {
    /// Carries commands to the store, over the connection behind the gate, and brings their
    /// answers: those of `count` commands, after the first `offset`. It may do neither.
    fn carry<'a>(
        &'a self,
        behind: Connection,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>>;
}

/// Sees each `redis.call` of each script before it is done.
pub trait Observer: Send + Debug {
    /// A script of this hash begins.
    fn begins(&mut self, sha: &str);

    /// A script is about to call a command. The error that this returns, its code first, is what
    /// the command then answers.
    fn before(&mut self, call: &RedisCall<'_>) -> Option<String>;
}

/// One `redis.call` of a script.
#[derive(Clone, Copy, Debug)]
pub struct RedisCall<'a> {
    /// Its line in the text of the script, from 1.
    pub line: usize,
    /// Whether the command is one that writes.
    pub writes: bool,
    /// Whether the script has called one that writes before.
    pub wrote: bool,
    /// The command, its name first.
    pub arguments: &'a [Vec<u8>],
}

/// Tokio's clock as a time of day, paused or not; it can be set.
#[derive(Debug)]
pub struct VirtualTime {
    origin: Instant,
    start_us: u64,
    set_by_us: AtomicI64,
}

impl VirtualTime {
    /// A clock that shows `start_ms` since the epoch now, and goes on from there.
    pub fn starting_at(start_ms: u64) -> Arc<Self> {
        let set_by_us = AtomicI64::new(0);
        Arc::new(Self { origin: Instant::now(), start_us: start_ms * 1000, set_by_us })
    }

    /// Sets it forward or back by so many ms.
    pub fn set_by_ms(&self, by_ms: i64) {
        self.set_by_us.fetch_add(by_ms * 1000, Ordering::Relaxed);
    }

    /// What it shows, in µs since the epoch.
    pub fn now_us(&self) -> u64 {
        let passed = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.start_us
            .saturating_add(passed)
            .saturating_add_signed(self.set_by_us.load(Ordering::Relaxed))
    }

    /// The same clock for a store.
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

/// What a key holds, as a reader gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A string.
    Text(Vec<u8>),
    /// A list, the first first.
    List(Vec<Vec<u8>>),
    /// Fields and values of a hash, or members and scores of a sorted set.
    Pairs(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members of a set.
    Set(Vec<Vec<u8>>),
}

/// A key, what it holds, and the ms that it has left; none for ever.
pub type KeyView = (Vec<u8>, Content, Option<u64>);

impl Store {
    /// The same store as one process reaches it.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        let mut store = self.clone();
        store.gate = Some(gate);
        store
    }

    /// The same store without a gate.
    #[must_use]
    pub fn ungated(&self) -> Self {
        let mut store = self.clone();
        store.gate = None;
        store
    }

    /// Makes this the store that `memory://name` means, until it is [withdrawn](Self::withdraw).
    pub fn publish(&self, name: &str) {
        let mut stores = NAMED.lock().expect("nothing panics while it holds the named stores");
        stores.insert(name.to_owned(), self.clone());
    }

    /// Forgets the store of this name.
    pub fn withdraw(name: &str) {
        NAMED.lock().expect("nothing panics while it holds the named stores").remove(name);
    }

    /// Shows each `redis.call` from now on to this observer.
    pub fn observe(&self, observer: impl Observer + 'static) {
        self.engine().keyspace.observer = Some(Box::new(observer));
    }

    /// Forgets all scripts, as SCRIPT FLUSH does.
    pub fn forget_scripts(&self) {
        self.engine().vm.flush();
    }

    /// A copy of all keys.
    pub fn snapshot(&self) -> Snapshot {
        let keyspace = &self.engine().keyspace;
        Snapshot { entries: keyspace.entries.clone(), expiries: keyspace.expiries.clone() }
    }

    /// Makes the keys what they were. Who waits for a list goes on waiting.
    pub fn restore(&self, snapshot: Snapshot) {
        let keyspace = &mut self.engine().keyspace;
        keyspace.entries = snapshot.entries;
        keyspace.expiries = snapshot.expiries;
    }

    /// Every key that has not expired, with what it holds.
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
