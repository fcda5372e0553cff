//! A queue in a list.

use optimus_core::{DateTime, Error, QueueName, QueueSample, Shut, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::{at_ms, pause_shown, span_ms};
use crate::access::Payloads;

/// How many tasks are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Counts {
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) blocked: u64,
    pub(crate) retry: u64,
    pub(crate) working: u64,
    pub(crate) dead: u64,
    pub(crate) cancelled: u64,
}

impl Counts {
    pub(crate) fn of(counts: &optimus_core::Counts) -> Self {
        Self {
            ready: counts.ready,
            delayed: counts.delayed,
            blocked: counts.blocked,
            retry: counts.retry,
            working: counts.working,
            dead: counts.dead,
            cancelled: counts.cancelled,
        }
    }

    /// Returns how many tasks the queue keeps.
    pub(crate) fn kept(&self) -> u64 {
        let waiting = self.ready + self.delayed + self.blocked + self.retry;
        waiting + self.working + self.dead + self.cancelled
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.delayed += other.delayed;
        self.blocked += other.blocked;
        self.retry += other.retry;
        self.working += other.working;
        self.dead += other.dead;
        self.cancelled += other.cancelled;
    }
}

/// What ended since the queue was first used.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub(crate) struct TotalsRow {
    pub(crate) success: u64,
    pub(crate) dead: u64,
    pub(crate) cancelled: u64,
    pub(crate) retry: u64,
}

/// A pause.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PausedRow {
    /// Who has paused it; empty if this is not known.
    by: String,
    why: String,
    since_ms: Option<u64>,
}

impl PausedRow {
    pub(crate) fn of(shut: &Shut) -> Self {
        // Everybody sees the same rows.
        let Shut { by, why, since, .. } = pause_shown(shut, Payloads::Redacted);
        Self { by, why, since_ms: Some(at_ms(since)) }
    }

    pub(crate) fn unknown() -> Self {
        Self { by: String::new(), why: String::new(), since_ms: None }
    }
}

/// A queue.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct QueueRow {
    pub(crate) queue: String,
    pub(crate) counts: Counts,
    pub(crate) totals: TotalsRow,
    /// The time since the submit of the first ready task, or since the first task is due that no
    /// worker has claimed.
    pub(crate) oldest_ms: Option<u64>,
    /// The time from which on that counts. Rows are sorted by this: queues are read at different
    /// moments.
    #[serde(skip)]
    pub(crate) oldest_since: Option<DateTime<Utc>>,
    pub(crate) paused: Option<PausedRow>,
    /// Tasks that succeeded in a second, over the last minute.
    pub(crate) rate_s: Option<f64>,
    /// Attempts that failed or were lost in the present hour and the one before.
    pub(crate) failed_1h: Option<u64>,
    /// The slots of the processes that serve it, and whose leases are not over.
    pub(crate) slots: Option<u64>,
    /// Whether tasks wait for a worker that is not there, or were left by one that has died.
    pub(crate) unserved: bool,
    /// The slots that it needs to end its backlog in a minute.
    pub(crate) want_slots: Option<u64>,
    /// How long its ready tasks last at this rate.
    pub(crate) drain_ms: Option<u64>,
    /// Why Redis refuses to read the queue. Then its numbers are 0.
    pub(crate) problem: Option<String>,
}

impl QueueRow {
    pub(crate) fn of(sample: &QueueSample, rate: Option<f64>, shut: Option<&Shut>) -> Self {
        let seen = &sample.seen;
        let paused = shut.map(PausedRow::of);
        let totals = &seen.totals;
        Self {
            queue: seen.queue.to_string(),
            counts: Counts::of(&seen.counts),
            totals: TotalsRow {
                success: totals.successes,
                dead: totals.deaths,
                cancelled: totals.cancels,
                retry: totals.retries,
            },
            oldest_ms: seen.oldest.map(span_ms),
            oldest_since: seen.oldest_since,
            paused: paused.or_else(|| seen.counts.paused.then(PausedRow::unknown)),
            rate_s: rate,
            failed_1h: Some(seen.recent.retries + seen.recent.deaths),
            slots: Some(sample.slots),
            unserved: is_unserved(sample),
            want_slots: Some(sample.want_slots),
            drain_ms: rate.and_then(|rate| drain_ms(seen.counts.ready, rate)),
            problem: None,
        }
    }

    /// A queue that can't be read.
    pub(crate) fn unreadable(queue: &QueueName, problem: &Error) -> Self {
        Self { queue: queue.to_string(), problem: Some(problem.to_string()), ..Self::default() }
    }

    /// Returns how much somebody should look at the queue; 0 for not at all. What is broken now
    /// comes before what has failed earlier.
    pub(crate) fn urgency(&self) -> u64 {
        if self.problem.is_some() {
            return u64::MAX;
        }
        let mut urgency = if self.unserved { UNSERVED } else { 0 };
        if self.paused.is_some() {
            urgency += PAUSED;
        }
        let late = self.oldest_ms.unwrap_or(0) / 1_000;
        if late >= LATE_SECONDS {
            urgency += LATE + late.min(LATE_MAX);
        }
        urgency + self.failed_1h.unwrap_or(0).min(10_000_000) + self.counts.dead.min(1_000_000)
    }
}

/// What weighs most at first: each is more than all below it together.
const UNSERVED: u64 = 4_000_000_000;
const PAUSED: u64 = 2_000_000_000;
const LATE: u64 = 500_000_000;
const LATE_MAX: u64 = 100_000_000;
const LATE_SECONDS: u64 = 60;

/// Returns whether tasks wait for a worker that is not there, or were left by one that has died.
fn is_unserved(sample: &QueueSample) -> bool {
    let counts = &sample.seen.counts;
    // Tasks that are due and that nobody has claimed are not among the ready ones.
    let wait = counts.ready > 0 || sample.want_slots > counts.working;
    let are_left = counts.working > 0 && sample.processes == 0;
    sample.slots == 0 && (wait || are_left)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts are far below 2^52, and a time that is too long becomes the longest"
)]
fn drain_ms(ready: u64, rate: f64) -> Option<u64> {
    (ready > 0 && rate > 0.0).then(|| (ready as f64 / rate * 1_000.0) as u64)
}
