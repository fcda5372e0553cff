//! A counter to wait on: the tested code hits it, the test waits for the nth hit.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The time limit of a wait. In a correct test no signal takes this long, and a broken test must
/// fail soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts hits. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    hits: watch::Sender<u64>,
}

impl Signal {
    /// Returns a signal without hits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more hit and wakes the waiting tests.
    pub fn hit(&self) {
        self.hits.send_modify(|hits| *hits += 1);
    }

    /// Returns how often the signal was hit.
    pub fn hits(&self) -> u64 {
        *self.hits.borrow()
    }

    /// Returns as soon as there are `n` hits or more, earlier ones included.
    ///
    /// # Panics
    ///
    /// After 30 s. The message contains the number of hits.
    pub async fn wait_for(&self, n: u64) {
        let mut hits = self.hits.subscribe();
        let arrival = timeout(PATIENCE, hits.wait_for(|hits| *hits >= n)).await.is_ok();
        assert!(arrival, "waited {PATIENCE:?} for {n} hits and saw {}", self.hits());
    }
}
