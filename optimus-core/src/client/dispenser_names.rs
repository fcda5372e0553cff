//! The names of dispensers: a client that adds items tells them, and operators read them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{Client, Dispenser};
use crate::{Error, broker::Broker, dispenser_error::DispenserError, id::QueueName};

/// A name is told again after this time, because a store may lose it.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// How long a client waits for the answer, after the items were stored.
const WITHIN: Duration = Duration::from_secs(1);
/// How many names a client remembers.
const REMEMBERED_MAX: usize = 1_024;

/// When a client last told the name of each dispenser.
#[derive(Debug, Default)]
pub(super) struct ToldDispensers(Mutex<HashMap<QueueName, Instant>>);

impl ToldDispensers {
    /// Adds a dispenser to the list of those of the namespace, unless that was done lately. What
    /// can't be told now is told with the next items.
    async fn tell(&self, broker: &Broker, slot: &QueueName) {
        let is_told = {
            let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            told.get(slot).is_some_and(|at| at.elapsed() < AGAIN_AFTER)
        };
        if is_told || !matches!(timeout(WITHIN, broker.announce(slot)).await, Ok(Ok(()))) {
            return;
        }
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED_MAX {
            told.clear();
        }
        told.insert(slot.clone(), Instant::now());
    }
}

impl Client {
    /// Returns the names of the dispensers of this namespace that have items, or that somebody has
    /// used within a day: added or finished items, opened a rebuild, or was an assignee. One that
    /// is emptied and not used for longer is not listed until its next use.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn dispenser_names(&self) -> Result<Vec<String>, Error> {
        Ok(self.0.broker.dispenser_names().await?)
    }

    /// Lets operators find a dispenser.
    pub(super) async fn tell_dispenser(&self, slot: &QueueName) {
        self.0.told_dispensers.tell(&self.0.broker, slot).await;
    }
}

impl Dispenser {
    /// Returns whether a program has told the name.
    pub(super) async fn is_listed(&self) -> Result<bool, DispenserError> {
        let names = self.broker().dispenser_names().await;
        let names = names.map_err(|problem| self.failed("peek", problem))?;
        Ok(names.iter().any(|name| name == self.name()))
    }
}
