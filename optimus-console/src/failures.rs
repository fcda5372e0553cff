//! The causes of deaths, which are read again only where tasks have died: [`Failures`].

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::{Error, Fingerprints, Inspector, QueueName};

/// How long what was read is shown, even if more tasks have died.
const KEPT: Duration = Duration::from_secs(10);
/// Of how many queues it is kept.
const QUEUES_MAX: usize = 64;

/// What was read of each queue.
#[derive(Default)]
pub(crate) struct Failures(HashMap<QueueName, Kept>);

struct Kept {
    at: Instant,
    /// How many have died and are dead. If both are the same, nothing has changed.
    deaths: (u64, u64),
    found: Arc<Fingerprints>,
}

/// A queue with dead tasks.
#[derive(Debug, Clone)]
pub(crate) struct Dying {
    pub(crate) queue: QueueName,
    pub(crate) dead: u64,
    pub(crate) deaths: u64,
}

impl Failures {
    /// Reads the causes in these queues: in those with most dead tasks, up to `most`. It takes
    /// Redis about 1 µs for each dead task, up to 10,000 a queue, where a task has died since the
    /// last read. Returns how many queues were left out, too.
    pub(crate) async fn read(
        &mut self,
        inspector: &Inspector,
        mut queues: Vec<Dying>,
        most: usize,
    ) -> Result<(Vec<(QueueName, Arc<Fingerprints>)>, usize), Error> {
        queues.sort_by_key(|queue| Reverse(queue.dead));
        let left_out = queues.len().saturating_sub(most);
        queues.truncate(most);
        let mut found = Vec::with_capacity(queues.len());
        for Dying { queue, dead, deaths } in queues {
            let kept = self
                .0
                .get(&queue)
                .filter(|kept| kept.deaths == (dead, deaths) || kept.at.elapsed() < KEPT);
            let fingerprints = if let Some(kept) = kept {
                kept.found.clone()
            } else {
                let fingerprints = Arc::new(inspector.fingerprints(&queue).await?);
                let (at, found) = (Instant::now(), fingerprints.clone());
                self.make_room();
                self.0.insert(queue.clone(), Kept { at, deaths: (dead, deaths), found });
                fingerprints
            };
            found.push((queue, fingerprints));
        }
        Ok((found, left_out))
    }

    fn make_room(&mut self) {
        if self.0.len() < QUEUES_MAX {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, kept)| kept.at).map(|(queue, _)| queue.clone());
        oldest.and_then(|queue| self.0.remove(&queue));
    }
}
