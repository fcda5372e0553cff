//! One read of all queues: [`Snapshot`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use optimus_core::{Dying, FingerprintRow, Operation, ProcessDetails, QueueName};

use crate::{
    access::{Identity, Patterns, Payloads, Reader},
    view::{
        Counts, FailureRow, Features, OperationRow, Overview, Point, QueueRow, Rates, RedisState,
        Slots, StuckRow, is_seen,
    },
};

const ATTENTION_MAX: usize = 20;
const STUCK_MAX: usize = 20;
const FAILURES_MAX: usize = 10;
const OPERATIONS_MAX: usize = 10;
/// How many forms of an overview are kept, for people who see other queues.
const FORMS_MAX: usize = 64;

type Forms = HashMap<(Patterns, Payloads), Arc<str>>;

/// One read of all queues.
pub(crate) struct Snapshot {
    /// Counts the reads of this process, for `Last-Event-ID`.
    pub(crate) number: u64,
    /// When Redis was read, or could not be read.
    pub(crate) at: Instant,
    /// When the numbers were read, and the time of Redis then.
    pub(crate) sampled: Instant,
    pub(crate) sampled_ms: u64,
    pub(crate) namespace: String,
    /// By name.
    pub(crate) entries: Vec<Entry>,
    pub(crate) left_out: u64,
    pub(crate) redis: RedisState,
    pub(crate) slots: Slots,
    pub(crate) processes: u64,
    /// The first 1,000 processes of those whose leases are not over.
    pub(crate) serving: Arc<[Serving]>,
    /// Those of the first 1,000 processes whose handlers keep them from work.
    pub(crate) stuck: Arc<[ProcessDetails]>,
    pub(crate) features: Features,
    pub(crate) series: Vec<Point>,
    /// The latest first.
    pub(crate) operations: Vec<Operation>,
    pub(crate) forms: Mutex<Forms>,
}

/// One queue.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) row: QueueRow,
    /// The bytes of its dead tasks.
    pub(crate) dead_bytes: u64,
    pub(crate) rates: Rates,
    /// How many processes serve it.
    pub(crate) processes: u64,
}

/// What a process serves.
#[derive(Debug, Clone)]
pub(crate) struct Serving {
    pub(crate) queues: Vec<String>,
    pub(crate) slots: Slots,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            number: 0,
            at: Instant::now(),
            sampled: Instant::now(),
            sampled_ms: 0,
            namespace: String::new(),
            entries: Vec::new(),
            left_out: 0,
            redis: RedisState::default(),
            slots: Slots::default(),
            processes: 0,
            serving: Arc::default(),
            stuck: Arc::default(),
            features: Features::default(),
            series: Vec::new(),
            operations: Vec::new(),
            forms: Mutex::default(),
        }
    }
}

impl Snapshot {
    /// Returns the place of a queue.
    pub(super) fn position(&self, queue: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.row.queue.as_str().cmp(queue)).ok()
    }

    pub(crate) fn row(&self, queue: &str) -> Option<&QueueRow> {
        self.position(queue).map(|at| &self.entries[at].row)
    }

    /// Returns the queues that somebody sees.
    pub(crate) fn seen_by<'a>(
        &'a self,
        identity: &'a Identity,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        let is_all = identity.queues.is_all();
        self.entries.iter().filter(move |entry| is_all || identity.queues.take(&entry.row.queue))
    }

    /// Returns the queues with dead tasks.
    pub(crate) fn dying(&self, takes: impl Fn(&str) -> bool) -> Vec<Dying> {
        let entries = self.entries.iter().filter(|entry| entry.row.counts.dead > 0);
        entries
            .filter(|entry| takes(&entry.row.queue))
            .filter_map(|entry| {
                let queue = QueueName::new(&entry.row.queue).ok()?;
                let (dead, deaths) = (entry.row.counts.dead, entry.row.totals.dead);
                Some(Dying { queue, dead, deaths, dead_bytes: entry.dead_bytes })
            })
            .collect()
    }

    pub(super) fn clone_with(&self, number: u64) -> Self {
        Self {
            number,
            at: self.at,
            sampled: self.sampled,
            sampled_ms: self.sampled_ms,
            namespace: self.namespace.clone(),
            entries: self.entries.clone(),
            left_out: self.left_out,
            redis: self.redis.clone(),
            slots: self.slots,
            processes: self.processes,
            serving: self.serving.clone(),
            stuck: self.stuck.clone(),
            features: self.features,
            series: self.series.clone(),
            operations: self.operations.clone(),
            forms: Mutex::default(),
        }
    }

    /// Returns how old the numbers are.
    pub(crate) fn age(&self) -> Duration {
        self.sampled.elapsed()
    }

    /// Returns the same numbers with a note that Redis can't be read.
    pub(super) fn without_redis(&self, number: u64) -> Self {
        let mut snapshot = self.clone_with(number);
        snapshot.redis.up = false;
        snapshot.at = Instant::now();
        snapshot
    }

    /// Returns how many processes serve the queues that somebody sees, and their slots.
    fn served(&self, identity: &Identity) -> (u64, Slots) {
        if identity.queues.is_all() {
            return (self.processes, self.slots);
        }
        let seen = self.serving.iter().filter(|one| identity.queues.take_one_of(&one.queues));
        seen.fold((0, Slots::default()), |(processes, slots), one| {
            let busy = slots.busy + one.slots.busy;
            (processes + 1, Slots { busy, allowed: slots.allowed + one.slots.allowed })
        })
    }

    /// Returns what somebody sees first, with the causes of deaths and the features of the queues
    /// that they see.
    pub(super) fn overview(
        &self,
        identity: &Identity,
        payloads: Payloads,
        worst: &[(QueueName, FingerprintRow)],
        features: Features,
    ) -> Overview {
        let (mut counts, mut rates, mut oldest_ms) = (Counts::default(), Rates::default(), None);
        let mut queue_count = 0;
        let mut urgent: Vec<(u64, &QueueRow)> = Vec::new();
        for Entry { row, rates: of_queue, .. } in self.seen_by(identity) {
            queue_count += 1;
            counts.add(&row.counts);
            rates.success_s += of_queue.success_s;
            rates.dead_s += of_queue.dead_s;
            rates.retry_s += of_queue.retry_s;
            oldest_ms = oldest_ms.max(row.oldest_ms);
            urgent.extend(Some((row.urgency(), row)).filter(|(urgency, _)| *urgency > 0));
        }
        urgent.sort_by_key(|(urgency, _)| std::cmp::Reverse(*urgency));
        urgent.truncate(ATTENTION_MAX);
        let sees_all = identity.queues.is_all();
        let reader = Reader { payloads, queues: &identity.queues };
        let (processes, slots) = self.served(identity);
        Overview {
            now_ms: self.sampled_ms + u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX),
            sampled_ms: self.sampled_ms,
            redis: self.redis.clone(),
            namespace: self.namespace.clone(),
            counts,
            rates,
            oldest_ms,
            slots,
            processes,
            queue_count: queue_count + if sees_all { self.left_out } else { 0 },
            left_out: self.left_out,
            attention: urgent.into_iter().map(|(_, row)| row.clone()).collect(),
            stuck: self.stuck(identity),
            failures: worst
                .iter()
                .take(FAILURES_MAX)
                .map(|(queue, row)| FailureRow::of(queue, row, reader))
                .collect(),
            operations: self.operations(identity, payloads).take(OPERATIONS_MAX).collect(),
            features,
            // The points are of all queues.
            series: if sees_all { self.series.clone() } else { Vec::new() },
        }
    }

    /// Returns the processes whose handlers keep them from work, as far as somebody sees that.
    fn stuck(&self, identity: &Identity) -> Vec<StuckRow> {
        let rows = self.stuck.iter().filter_map(|process| StuckRow::of(process, identity));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.urgency()));
        rows.truncate(STUCK_MAX);
        rows
    }

    /// Returns the operations that somebody sees: those under way, and the latest that are over.
    pub(crate) fn operations<'a>(
        &'a self,
        identity: &'a Identity,
        payloads: Payloads,
    ) -> impl Iterator<Item = OperationRow> + 'a {
        let open = self.operations.iter().filter(|operation| !operation.state.is_over());
        let over = self.operations.iter().filter(|operation| operation.state.is_over());
        let seen = open.chain(over).filter(|operation| is_seen(operation, identity));
        let reader = Reader { payloads, queues: &identity.queues };
        seen.map(move |operation| OperationRow::of(operation, reader))
    }

    /// Returns the overview as JSON, if somebody who sees the same has asked for it.
    pub(super) fn form(&self, identity: &Identity, payloads: Payloads) -> Option<Arc<str>> {
        self.forms().get(&(identity.queues.clone(), payloads)).cloned()
    }

    pub(super) fn keep_form(&self, identity: &Identity, payloads: Payloads, json: Arc<str>) {
        let mut forms = self.forms();
        if forms.len() < FORMS_MAX {
            forms.insert((identity.queues.clone(), payloads), json);
        }
    }

    fn forms(&self) -> MutexGuard<'_, Forms> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
