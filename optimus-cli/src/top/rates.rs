//! How many tasks succeed in a second: [`Rates`].

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use optimus_core::{QueueName, QueueSample};

/// The time over which they are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Over a shorter time, no rate is said.
const SHORTEST: Duration = Duration::from_millis(500);

/// The successes of each queue at the last reads.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<QueueName, VecDeque<(Instant, u64)>>);

impl Rates {
    /// Forgets the queues that are not among these, by name.
    pub(super) fn retain(&mut self, queues: &[QueueSample]) {
        self.0.retain(|queue, _| queues.iter().any(|sample| sample.seen.queue == *queue));
    }

    /// Adds a read, and returns the rate; `None` after the first read.
    pub(super) fn note(&mut self, queue: &QueueName, now: Instant, total: u64) -> Option<f64> {
        let past = self.0.entry(queue.clone()).or_default();
        if past.back().is_some_and(|(_, last)| *last > total) {
            // The queue was removed, or Redis has lost writes.
            past.clear();
        }
        while past.len() > 1 && now.duration_since(past[1].0) >= WINDOW {
            past.pop_front();
        }
        past.push_back((now, total));
        let (at, first) = past.front()?;
        let time = now.duration_since(*at);
        (time >= SHORTEST).then(|| float(total - first) / time.as_secs_f64())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_ten_seconds_and_begins_again_with_the_queue() {
        let (queue, begun) = (QueueName::new("mail").unwrap(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut rates = Rates::default();
        assert_eq!(rates.note(&queue, at(0), 1_000), None);
        assert_eq!(rates.note(&queue, at(1), 1_010), Some(10.0));
        assert_eq!(rates.note(&queue, at(11), 1_110), Some(10.0));
        assert_eq!(rates.note(&queue, at(21), 1_110), Some(0.0));
        assert_eq!(rates.note(&queue, at(22), 3), None, "it was removed");
        assert_eq!(rates.note(&queue, at(24), 7), Some(2.0));
        rates.retain(&[]);
        assert_eq!(rates.note(&queue, at(25), 7), None);
    }
}
