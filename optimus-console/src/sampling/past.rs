//! What a read needs of the reads before it: [`Past`].

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use optimus_core::{
    Client, Error, Gate, ProcessDetails, QueueName, QueueSample, Sample, Sampler, Shut, Totals,
};

use super::{
    features::FeatureSearch,
    snapshot::{Entry, Serving, Snapshot},
};
use crate::view::{Point, QueueRow, Rates, RedisState, Slots, is_stuck};

/// How many queues are read. Of more, those that are first by name are.
const QUEUES_MAX: usize = 5_000;
/// The time in which a backlog is to end, for the slots that a queue needs.
const TARGET: Duration = Duration::from_secs(60);
/// The time over which rates are counted.
const WINDOW: Duration = Duration::from_secs(60);
const POINTS_MAX: usize = 120;
/// Reads that are further apart are not of one line. They are 5 s apart while somebody looks.
const GAP_MAX: Duration = Duration::from_secs(20);
/// Of how many paused queues the reason is read.
const PAUSES_MAX: usize = 100;
const REQUESTS_MAX: usize = 8;
/// How many operations are watched.
pub(super) const OPERATIONS_MAX: usize = 20;

/// The reads before.
pub(super) struct Past {
    client: Client,
    sampler: Sampler,
    features: FeatureSearch,
    ended: BTreeMap<QueueName, VecDeque<(Instant, Totals)>>,
    points: VecDeque<Point>,
    last: Option<Last>,
    reads: u64,
}

/// The read before.
struct Last {
    at: Instant,
    left_out: u64,
    unread: BTreeSet<QueueName>,
}

impl Last {
    /// Returns whether a queue that the read has not found was not there.
    fn is_whole_but_for(&self, queue: &QueueName) -> bool {
        self.left_out == 0 && !self.unread.contains(queue)
    }
}

impl Past {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            sampler: Sampler::new(client.inspector(), Vec::new(), QUEUES_MAX, TARGET),
            features: FeatureSearch::default(),
            client: client.clone(),
            ended: BTreeMap::new(),
            points: VecDeque::new(),
            last: None,
            reads: 0,
        }
    }

    /// Reads all once.
    pub(super) async fn read(&mut self) -> Result<Snapshot, Error> {
        let inspector = self.client.inspector();
        let sample = self.sampler.sample().await?;
        let now_ms = crate::view::at_ms(inspector.now().await?);
        let facts = inspector.server().await.ok();
        let shut = self.pauses(&sample).await;
        let operations = self.client.operations().list(OPERATIONS_MAX).await.unwrap_or_default();
        let features = self.features.look(&self.client, &sample).await;
        let now = Instant::now();
        let Sample { queues, unreadable, left_out, processes, process_rows, .. } = sample;
        let slots = Slots { busy: sample.slots_busy, allowed: sample.slots_allowed };
        let unread: BTreeSet<_> = unreadable.iter().map(|(queue, _)| queue.clone()).collect();
        self.ended.retain(|queue, _| {
            unread.contains(queue)
                || queues.binary_search_by(|sample| sample.seen.queue.cmp(queue)).is_ok()
        });
        self.add_point(now, now_ms, &queues);
        let mut entries: Vec<Entry> = queues
            .iter()
            .map(|sample| self.entry(sample, now, shut.get(&sample.seen.queue)))
            .collect();
        entries.extend(unreadable.iter().map(|(queue, problem)| Entry {
            row: QueueRow::unreadable(queue, problem),
            dead_bytes: 0,
            rates: Rates::default(),
            processes: 0,
        }));
        entries.sort_by(|one, other| one.row.queue.cmp(&other.row.queue));
        self.last = Some(Last { at: now, left_out, unread });
        Ok(Snapshot {
            number: self.next_number(),
            at: now,
            sampled: now,
            sampled_ms: now_ms,
            namespace: self.client.broker().namespace().to_owned(),
            entries,
            left_out,
            redis: facts.map_or_else(
                || RedisState { up: true, ..RedisState::default() },
                |facts| RedisState {
                    version: facts.version,
                    used_bytes: facts.used_memory,
                    max_bytes: facts.maxmemory.filter(|max| *max > 0),
                    up: true,
                },
            ),
            slots,
            processes,
            serving: process_rows.iter().filter(|row| !row.is_lost).map(serving).collect(),
            stuck: process_rows.into_iter().filter(is_stuck).collect(),
            features,
            operations,
            series: self.points.iter().copied().collect(),
            ..Snapshot::default()
        })
    }

    /// Returns the number of the next snapshot, also of one that could not be read.
    pub(super) fn next_number(&mut self) -> u64 {
        self.reads += 1;
        self.reads
    }

    /// Reads one queue again; `None` if it was not read before.
    pub(super) async fn reread(
        &mut self,
        last: &Snapshot,
        queue: &QueueName,
    ) -> Result<Option<Snapshot>, Error> {
        let Some(at) = last.position(queue.as_str()) else { return Ok(None) };
        let before = &last.entries[at];
        let seen = self.client.inspector().overview(std::slice::from_ref(queue)).await?;
        let Some(seen) = seen.into_iter().next() else { return Ok(None) };
        if seen.problem.is_some() {
            return Ok(None);
        }
        let (slots, want_slots) =
            (before.row.slots.unwrap_or(0), before.row.want_slots.unwrap_or(0));
        let sample = QueueSample { seen, processes: before.processes, slots, want_slots };
        let shut = if sample.seen.counts.paused { pause(&self.client, queue).await } else { None };
        let rates = before.rates;
        let rate = before.row.rate_s;
        let row = QueueRow::of(&sample, rate, shut.as_ref());
        let mut snapshot = last.clone_with(self.next_number());
        let (dead_bytes, processes) = (sample.seen.counts.dead_bytes, before.processes);
        snapshot.entries[at] = Entry { row, dead_bytes, rates, processes };
        Ok(Some(snapshot))
    }

    /// Reads why queues are paused.
    async fn pauses(&self, sample: &Sample) -> BTreeMap<QueueName, Shut> {
        let mut reads = Vec::new();
        for queue in &sample.queues {
            if queue.seen.counts.paused && reads.len() < PAUSES_MAX {
                let queue = queue.seen.queue.clone();
                let client = self.client.clone();
                reads.push(async move { Some((queue.clone(), pause(&client, &queue).await?)) });
            }
        }
        let found: Vec<_> = stream::iter(reads).buffered(REQUESTS_MAX).collect().await;
        found.into_iter().flatten().collect()
    }

    fn entry(&mut self, sample: &QueueSample, now: Instant, shut: Option<&Shut>) -> Entry {
        let totals = sample.seen.totals;
        let ended = self.ended.entry(sample.seen.queue.clone()).or_default();
        let is_broken = |(at, last): &(Instant, Totals)| {
            // The queue was removed, or Redis has lost writes; or nobody has read for long.
            last.successes > totals.successes || now.duration_since(*at) > GAP_MAX
        };
        if ended.back().is_some_and(is_broken) {
            ended.clear();
        }
        while ended.len() > 1 && now.duration_since(ended[1].0) >= WINDOW {
            ended.pop_front();
        }
        ended.push_back((now, totals));
        let rates = ended.front().and_then(|(at, first)| rates(first, &totals, now - *at));
        let row = QueueRow::of(sample, rates.map(|rates| rates.success_s), shut);
        let dead_bytes = sample.seen.counts.dead_bytes;
        let rates = rates.unwrap_or_default();
        Entry { row, dead_bytes, rates, processes: sample.processes }
    }

    /// Adds what has ended since the read before, and begins again if nobody has read for long: one
    /// point would be as high as all that ended meanwhile.
    fn add_point(&mut self, now: Instant, at_ms: u64, queues: &[QueueSample]) {
        let Some(last) = &self.last else { return };
        if now.duration_since(last.at) > GAP_MAX {
            self.points.clear();
            return;
        }
        let mut point = Point { at_ms, success: 0, retry: 0, dead: 0 };
        for QueueSample { seen, .. } in queues {
            if !self.ended.contains_key(&seen.queue) && last.is_whole_but_for(&seen.queue) {
                // The queue is new, so all of it ended since.
                let since = VecDeque::from([(last.at, Totals::default())]);
                self.ended.insert(seen.queue.clone(), since);
            }
            let before = self.ended.get(&seen.queue).and_then(VecDeque::back);
            let Some((_, before)) = before else { continue };
            point.success += seen.totals.successes.saturating_sub(before.successes);
            point.retry += seen.totals.retries.saturating_sub(before.retries);
            point.dead += seen.totals.deaths.saturating_sub(before.deaths);
        }
        self.points.push_back(point);
        while self.points.len() > POINTS_MAX {
            self.points.pop_front();
        }
    }
}

fn serving(process: &ProcessDetails) -> Serving {
    let (busy, allowed) = (process.doing.busy as u64, process.doing.slots as u64);
    Serving { queues: process.about.queues.clone(), slots: Slots { busy, allowed } }
}

async fn pause(client: &Client, queue: &QueueName) -> Option<Shut> {
    let limit = client.gate(queue, Gate::Queue).get().await.ok().flatten();
    limit.and_then(|limit| limit.shut)
}

/// Returns what ended in a second; `None` without two reads.
fn rates(first: &Totals, last: &Totals, time: Duration) -> Option<Rates> {
    let seconds = time.as_secs_f64();
    let rate = |before: u64, after: u64| float(after.saturating_sub(before)) / seconds;
    (seconds > 0.5).then(|| Rates {
        success_s: rate(first.successes, last.successes),
        dead_s: rate(first.deaths, last.deaths),
        retry_s: rate(first.retries, last.retries),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_after_one_that_failed_has_another_number() {
        let client = Client::builder("memory://console-numbers").connect().await.unwrap();
        let mut past = Past::new(&client);
        let first = past.read().await.unwrap();
        let failed = first.without_redis(past.next_number());
        let again = past.read().await.unwrap();
        assert_eq!([first.number, failed.number, again.number], [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_rate_is_unknown_after_a_time_in_which_nobody_has_read() {
        let client = Client::builder("memory://console-rates").connect().await.unwrap();
        client.pause("mail").await.unwrap();
        let mut past = Past::new(&client);
        past.read().await.unwrap();
        let sample = past.sampler.sample().await.unwrap();
        let read_at = past.last.as_ref().unwrap().at;
        let mut rate = |at| past.entry(&sample.queues[0], at, None).row.rate_s;
        assert_eq!(rate(read_at + GAP_MAX), Some(0.0));
        assert_eq!(rate(read_at + 3 * GAP_MAX), None, "it would count what ended long ago");
        assert_eq!(rate(read_at + 4 * GAP_MAX), Some(0.0));
    }

    #[tokio::test]
    async fn a_line_begins_again_after_a_time_in_which_nobody_has_read() {
        let client = Client::builder("memory://console-gap").connect().await.unwrap();
        let mut past = Past::new(&client);
        assert!(past.read().await.unwrap().series.is_empty());
        assert_eq!(past.read().await.unwrap().series.len(), 1);
        let read_at = past.last.as_ref().unwrap().at;
        past.add_point(read_at + GAP_MAX, 0, &[]);
        assert_eq!(past.points.len(), 2);
        past.add_point(read_at + 2 * GAP_MAX, 0, &[]);
        assert_eq!(past.points.len(), 0);
    }
}
