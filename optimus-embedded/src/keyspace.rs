//! The keys with their values and expiries, at one fixed time.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::blocking::Waiters;
use crate::clock::Clock;
use crate::error::CommandError;
use crate::value::{Bytes, Data, Kind};

/// The seed of HRANDFIELD and SPOP. Their choices are random, but the same in every store.
const SEED: u64 = 0;

/// All keys of a store.
///
/// Time does not move while a command, a script or a transaction runs, so no key expires during
/// that time. Expired keys are removed when the next command, script or transaction begins.
#[derive(Debug)]
pub(crate) struct Keyspace {
    pub(crate) entries: IndexMap<Bytes, Entry>,
    /// The expiries of all keys in `entries`, the earliest first.
    pub(crate) expiries: BTreeSet<(u64, Bytes)>,
    clock: Clock,
    now_us: u64,
    pub(crate) rng: fastrand::Rng,
    /// The clients that wait for a list.
    pub(crate) waiters: Waiters,
    /// Whether commands that need memory are refused.
    pub(crate) full: bool,
    #[cfg(feature = "simulation")]
    pub(crate) observer: Option<Box<dyn crate::simulation::Observer>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) data: Data,
    pub(crate) expires_at_ms: Option<u64>,
}

impl Keyspace {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            entries: IndexMap::new(),
            expiries: BTreeSet::new(),
            now_us: clock.now_us(),
            clock,
            rng: fastrand::Rng::with_seed(SEED),
            waiters: Waiters::default(),
            full: false,
            #[cfg(feature = "simulation")]
            observer: None,
        }
    }

    /// Sets the time for the next command, and removes the keys that have expired.
    pub(crate) fn begin(&mut self) {
        self.now_us = self.clock.now_us();
        let now_ms = self.now_ms();
        while self.expiries.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms) {
            let (_, key) = self.expiries.pop_first().expect("the first expiry was just read");
            self.entries.swap_remove(&key);
        }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the keys by their position. A removal may change a position, but only to a lower
    /// one.
    pub(crate) fn nth(&self, position: usize) -> Option<&Bytes> {
        self.entries.get_index(position).map(|(key, _)| key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.keys()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.expiries.clear();
    }

    pub(crate) fn data(&self, key: &[u8]) -> Option<&Data> {
        self.entries.get(key).map(|entry| &entry.data)
    }

    /// Returns the value of a key, if the key exists. The key must have this type.
    pub(crate) fn read<T: Kind>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.data(key).map(|data| T::of(data).ok_or(CommandError::WrongType)).transpose()
    }

    /// Applies `change` to the value, if the key exists. Removes the key if its value is then
    /// empty.
    pub(crate) fn edit<T: Kind, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        let Some(entry) = self.entries.get_mut(key) else { return Ok(None) };
        let outcome = change(T::of_mut(&mut entry.data).ok_or(CommandError::WrongType)?);
        if entry.data.is_empty() {
            self.remove(key);
        }
        Ok(Some(outcome))
    }

    /// Does the same as [`Self::edit`], but creates a new value if the key does not exist.
    pub(crate) fn upsert<T: Kind + Default, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, CommandError> {
        if !self.entries.contains_key(key) {
            self.put(key, T::default().wrap(), None);
        }
        let outcome = self.edit(key, change)?;
        Ok(outcome.expect("the key existed or was just created"))
    }

    /// Sets a key. The key may have any earlier value.
    pub(crate) fn put(&mut self, key: &[u8], data: Data, expires_at_ms: Option<u64>) {
        match self.entries.get_mut(key) {
            Some(entry) => entry.data = data,
            None => {
                self.entries.insert(key.to_vec(), Entry { data, expires_at_ms: None });
            }
        }
        self.set_expiry(key, expires_at_ms);
    }

    /// Removes a key. Returns whether the key existed.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.set_expiry(key, None);
        self.entries.swap_remove(key).is_some()
    }

    pub(crate) fn expiry(&self, key: &[u8]) -> Option<u64> {
        self.entries.get(key)?.expires_at_ms
    }

    /// Sets or removes the expiry of an existing key.
    pub(crate) fn set_expiry(&mut self, key: &[u8], expires_at_ms: Option<u64>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(before) = std::mem::replace(&mut entry.expires_at_ms, expires_at_ms) {
            self.expiries.remove(&(before, key.to_vec()));
        }
        if let Some(due_ms) = expires_at_ms {
            self.expiries.insert((due_ms, key.to_vec()));
        }
    }
}
