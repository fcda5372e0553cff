//! The causes of deaths, which are read again only where tasks have died: [`Failures`].

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, fingerprints::Fingerprints, id::QueueName, inspect::Inspector, sampler::Sample,
};

/// How long what was read is shown, even if more tasks have died.
const KEPT: Duration = Duration::from_secs(10);
/// Of how many queues it is kept.
const QUEUES_MAX: usize = 64;

/// The causes of deaths in the queues with most dead tasks, for those who look again and again.
#[derive(Debug, Default)]
pub struct Failures {
    kept: Mutex<HashMap<QueueName, Kept>>,
    /// One reads at a time. Who comes later takes what was read.
    reading: tokio::sync::Mutex<()>,
}

/// How many are dead and have died, and the bytes of the dead ones. If all are the same, nothing
/// has changed.
type Seen = (u64, u64, u64);

#[derive(Debug)]
struct Kept {
    at: Instant,
    seen: Seen,
    found: Arc<Fingerprints>,
}

/// A queue with dead tasks.
#[derive(Debug, Clone)]
pub struct Dying {
    /// The queue.
    pub queue: QueueName,
    /// How many tasks are dead.
    pub dead: u64,
    /// How many tasks have died so far.
    pub deaths: u64,
    /// The bytes of the dead tasks. They differ if the queue was emptied and used again.
    pub dead_bytes: u64,
}

impl Dying {
    /// Returns the queues of a read that have dead tasks.
    pub fn of(sample: &Sample) -> Vec<Self> {
        let seen = sample.queues.iter().map(|queue| &queue.seen);
        let dying = seen.filter(|seen| seen.counts.dead > 0);
        dying
            .map(|seen| Self {
                queue: seen.queue.clone(),
                dead: seen.counts.dead,
                deaths: seen.totals.deaths,
                dead_bytes: seen.counts.dead_bytes,
            })
            .collect()
    }
}

impl Failures {
    /// Reads the causes in these queues: in those with most dead tasks, up to `most`. It takes
    /// Redis about 1 µs for each dead task, up to 10,000 a queue, where a task has died since the
    /// last read. Returns how many queues were left out, too: those with fewer dead tasks, and
    /// those that Redis refuses to read, unless that is the only one.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn read(
        &self,
        inspector: &Inspector,
        mut queues: Vec<Dying>,
        most: usize,
    ) -> Result<(Vec<(QueueName, Arc<Fingerprints>)>, usize), Error> {
        queues.sort_by_key(|queue| Reverse(queue.dead));
        let mut left_out = queues.len().saturating_sub(most);
        queues.truncate(most);
        let is_alone = queues.len() == 1;
        let mut found = Vec::with_capacity(queues.len());
        let _reading = self.reading.lock().await;
        for Dying { queue, dead, deaths, dead_bytes } in queues {
            let seen = (dead, deaths, dead_bytes);
            let fingerprints = if let Some(kept) = self.fresh(&queue, seen) {
                kept
            } else {
                let fingerprints = match inspector.fingerprints(&queue).await {
                    Ok(found) => Arc::new(found),
                    Err(problem) if is_alone || problem.is_unavailable() => return Err(problem),
                    // Another program has written a key of it, which hides no other queue.
                    Err(_) => {
                        left_out += 1;
                        continue;
                    }
                };
                self.keep(queue.clone(), seen, fingerprints.clone());
                fingerprints
            };
            found.push((queue, fingerprints));
        }
        Ok((found, left_out))
    }

    /// Returns what was last read in these queues, however long ago, for times in which Redis can't
    /// be read. It does not wait for a read.
    pub fn kept(&self, mut queues: Vec<Dying>, most: usize) -> Vec<(QueueName, Arc<Fingerprints>)> {
        queues.sort_by_key(|queue| Reverse(queue.dead));
        let all = self.all();
        let kept = queues.into_iter().take(most).filter_map(|Dying { queue, .. }| {
            let found = all.get(&queue)?.found.clone();
            Some((queue, found))
        });
        kept.collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<QueueName, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was read of a queue, unless tasks have died since and it is old.
    fn fresh(&self, queue: &QueueName, seen: Seen) -> Option<Arc<Fingerprints>> {
        let all = self.all();
        let kept = all.get(queue)?;
        (kept.seen == seen || kept.at.elapsed() < KEPT).then(|| kept.found.clone())
    }

    fn keep(&self, queue: QueueName, seen: Seen, found: Arc<Fingerprints>) {
        let mut all = self.all();
        if all.len() >= QUEUES_MAX && !all.contains_key(&queue) {
            let oldest = all.iter().min_by_key(|(_, kept)| kept.at).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(queue, Kept { at: Instant::now(), seen, found });
    }
}
