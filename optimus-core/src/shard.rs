//! One shard of the data, as the function that works on it sees it: [`Shard`].

use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Data, Error,
    broker::{Broker, BrokerError, Holder, Positions, Refusal},
    shard_position::{has_ended, reached, smallest},
    stop_signal::StopSignal,
};

/// The most bytes of a position, as JSON.
pub(crate) const POSITION_MAX: usize = 64 * 1024;
/// The most bytes of a row's key.
const ROW_MAX: usize = 512;
/// How long a row is set aside after its first failure, and at most.
const ASIDE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(3600));

/// One shard of the data: which part of the rows the function works on in this round.
///
/// At any time, at most one worker holds a shard. A worker that was cut off from Redis may still
/// run its last round for a moment, so writes that must not be repeated are made under the
/// [fence](Self::fence).
pub struct Shard {
    pub(crate) facts: Arc<ShardFacts>,
}

/// What a worker knows about a shard that it holds.
#[doc(hidden)]
pub struct ShardFacts {
    pub name: String,
    pub index: u16,
    pub count: u16,
    pub generation: u64,
    pub fence: u64,
    pub data: Arc<Data>,
    pub stopping: Arc<StopSignal>,
    pub progress: Arc<Progress>,
    /// Who holds it; without one, nothing is stored.
    pub holder: Option<(Broker, Holder)>,
}

/// How far a shard has come, for all rounds of one holder.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Progress {
    /// The positions when the holder began.
    pub before: Positions,
    /// The position of this shard since then, as JSON.
    pub own: Mutex<Option<String>>,
    /// The positions that the user's database has, as JSON. The smallest one counts.
    pub stored: Mutex<Vec<String>>,
    /// The name of the function in that database, once a guard has found it.
    pub name_there: Mutex<Option<String>>,
    /// Whether the database knows the generation of the shard.
    pub is_guarded: AtomicBool,
    /// The failures of rows, if nothing is stored.
    pub failures: Mutex<BTreeMap<String, u32>>,
}

impl Progress {
    /// Returns the progress of a holder that begins.
    pub fn from(before: Positions) -> Self {
        Self { before, ..Self::default() }
    }

    /// Returns whether the pass over the shard has ended.
    pub fn has_ended(&self, generation: u64, index: u16) -> bool {
        let own = lock(&self.own).clone();
        has_ended(own.as_deref(), &self.before, (generation, index))
    }

    /// Notes that the pass over the shard has ended.
    pub fn end(&self) {
        *lock(&self.own) = Some(String::new());
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardFacts { name, index, count, fence, .. } = &*self.facts;
        f.debug_struct("Shard")
            .field("name", name)
            .field("index", index)
            .field("count", count)
            .field("fence", fence)
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// Makes a shard for a worker.
    #[doc(hidden)]
    pub fn of(facts: ShardFacts) -> Self {
        Self { facts: Arc::new(facts) }
    }

    /// Makes a shard without a worker and without Redis, for unit tests of a sharded function. It
    /// keeps its position itself.
    pub fn local(index: u16, count: u16) -> Self {
        Self::of(ShardFacts {
            name: "local".to_owned(),
            index,
            count,
            generation: 1,
            fence: 1,
            data: Arc::new(Data::new()),
            stopping: Arc::default(),
            progress: Arc::default(),
            holder: None,
        })
    }

    /// Returns the name of the sharded function.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// Returns the number of this shard, from 0. It works on the rows with `id % count = index`.
    pub fn index(&self) -> u16 {
        self.facts.index
    }

    /// Returns how many shards there are. It does not change during a round.
    pub fn count(&self) -> u16 {
        self.facts.count
    }

    /// Returns a number that is larger for each later holder of this shard. Store it with your own
    /// writes, so that a holder that was cut off can't overwrite the work of the next one.
    pub fn fence(&self) -> u64 {
        self.facts.fence
    }

    /// Returns a number that is larger after each change of the number of shards. No shard of a
    /// generation has a holder before all shards of the earlier ones are given back.
    pub fn generation(&self) -> u64 {
        self.facts.generation
    }

    /// Returns a value that the worker was given with `.data(…)`.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.facts.data.get()
    }

    #[doc(hidden)]
    pub fn all_data(&self) -> &Data {
        &self.facts.data
    }

    /// Resolves when the round should end soon: the worker shuts down, the shard goes to another
    /// worker or is paused, or the lease may end. A round that goes on is dropped.
    pub async fn stopping(&self) {
        self.facts.stopping.asked().await;
    }

    /// Returns whether the round should end soon; see [`stopping`](Self::stopping).
    pub fn is_stopping(&self) -> bool {
        self.facts.stopping.is_asked()
    }

    /// Returns how far this shard has come, as [`checkpoint`](Self::checkpoint) stored it; `None`
    /// at the beginning. After a guard of `optimus_sql`, it is the position in the database.
    ///
    /// After a change of the number of shards, each new shard begins at the smallest position of
    /// the old ones, so rows behind that position may be seen again, and none is missed. This needs
    /// positions that grow; if yours become smaller, use [`std::cmp::Reverse`].
    ///
    /// # Errors
    /// [`Error::is_invalid`] if a stored position has another type.
    pub fn position<T: DeserializeOwned + Ord + Clone>(&self) -> Result<Option<T>, Error> {
        let own = lock(&self.facts.progress.own).clone();
        let stored = lock(&self.facts.progress.stored).clone();
        let place = (self.facts.generation, self.facts.index);
        let found = match stored.as_slice() {
            [] => reached(own.as_deref(), &self.facts.progress.before, place),
            stored => smallest(stored),
        };
        found.map_err(|problem| {
            Error::invalid(format!(
                "shards {:?}: a stored position is not a {}: {problem}; begin again with \
                 client.shards({:?}).restart()",
                self.name(),
                std::any::type_name::<T>(),
                self.name()
            ))
        })
    }

    /// Stores how far this shard has come. The next holder begins there. Store a position only
    /// after the work up to it is done: a round that is lost between the two is repeated.
    ///
    /// # Errors
    /// [`Error::is_shard_lost`] if another worker holds the shard; nothing was stored then.
    /// [`Error::is_invalid`] if the value is no JSON or above 64 KiB; [`Error::is_unavailable`].
    pub async fn checkpoint<T: Serialize>(&mut self, position: &T) -> Result<(), Error> {
        let text = Self::position_text(position)?;
        if let Some((broker, holder)) = &self.facts.holder {
            broker.checkpoint(holder, &text).await.map_err(|problem| self.failed_by(problem))?;
        }
        *lock(&self.facts.progress.own) = Some(text);
        Ok(())
    }

    /// Counts a failure of a row and sets the row aside: for 30 s after the first failure, twice
    /// as long after each one more, and at most for an hour. Returns how often the row has failed.
    /// Leave the rows of [`set_aside`](Self::set_aside) out of your query, so that a row that
    /// always fails does not hold up the others.
    ///
    /// The counts are kept in Redis, for up to 10,000 rows, until a day after the end of their
    /// wait. To give a row up after some failures is up to you: mark it in your own data.
    ///
    /// # Errors
    /// As for [`checkpoint`](Self::checkpoint).
    pub async fn failed(&self, row: impl fmt::Display) -> Result<u32, Error> {
        let row = key_of(&row)?;
        let Some((broker, holder)) = &self.facts.holder else {
            let mut failures = lock(&self.facts.progress.failures);
            let times = failures.entry(row).or_default();
            *times += 1;
            return Ok(*times);
        };
        broker.demote(holder, &row, ASIDE).await.map_err(|problem| self.failed_by(problem))
    }

    /// Forgets the failures of a row, after it has succeeded.
    ///
    /// # Errors
    /// As for [`checkpoint`](Self::checkpoint).
    pub async fn succeeded(&self, row: impl fmt::Display) -> Result<(), Error> {
        let row = key_of(&row)?;
        let Some((broker, holder)) = &self.facts.holder else {
            lock(&self.facts.progress.failures).remove(&row);
            return Ok(());
        };
        broker.forget_failures(holder, &row).await.map_err(|problem| self.failed_by(problem))
    }

    /// Returns the rows that are set aside now, of all shards, up to 1,000: those that wait for the
    /// longest time. Their times are those of Redis' clock. A key that is no `K` is left out.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn set_aside<K: FromStr>(&self) -> Result<Vec<K>, Error> {
        let rows = match &self.facts.holder {
            Some((broker, holder)) => broker.set_aside(&holder.roster).await?,
            None => lock(&self.facts.progress.failures).keys().cloned().collect(),
        };
        Ok(rows.iter().filter_map(|row| row.parse().ok()).collect())
    }

    fn failed_by(&self, problem: BrokerError) -> Error {
        match problem.refusal() {
            Some(Refusal::Stale) => {
                Error::shard_lost(format!("{} of {:?}", self.index(), self.name()))
            }
            _ => problem.into(),
        }
    }
}

fn key_of(row: &impl fmt::Display) -> Result<String, Error> {
    let row = row.to_string();
    if row.len() > ROW_MAX {
        return Err(Error::invalid(format!(
            "the key of a row takes {} bytes; the limit is {ROW_MAX}; use its primary key",
            row.len()
        )));
    }
    Ok(row)
}

/// No user code runs under these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_local_shard_keeps_its_position_and_counts_failures() {
        let mut shard = Shard::local(2, 10);
        assert_eq!((shard.index(), shard.count(), shard.position::<i64>().unwrap()), (2, 10, None));
        shard.checkpoint(&7).await.unwrap();
        assert_eq!(shard.position::<i64>().unwrap(), Some(7));
        let problem = shard.position::<String>().unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("restart"), "{problem}");
        assert_eq!((shard.failed(5).await.unwrap(), shard.failed(5).await.unwrap()), (1, 2));
        assert_eq!(shard.set_aside::<i64>().await.unwrap(), [5]);
        shard.succeeded(5).await.unwrap();
        assert_eq!(shard.set_aside::<i64>().await.unwrap(), [0_i64; 0]);
        assert!(!shard.is_stopping() && shard.stopping().now_or_never().is_none());
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused() {
        let mut shard = Shard::local(0, 1);
        assert!(shard.checkpoint(&"x".repeat(POSITION_MAX)).await.unwrap_err().is_invalid());
        assert!(shard.failed("x".repeat(ROW_MAX + 1)).await.unwrap_err().is_invalid());
    }
}
