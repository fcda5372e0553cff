//! What ended, by time or by task.

use std::collections::BTreeMap;

use optimus_core::{Distribution, StatsSum, StatsUnit, TaskStats};
use serde::Serialize;
use utoipa::ToSchema;

use super::{at_ms, span_ms};

/// What ended in one minute, hour or day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatsRowView {
    since_ms: u64,
    success: u64,
    retry: u64,
    dead: u64,
    cancelled: u64,
    lost: u64,
    run_p50_ms: Option<u64>,
    run_p95_ms: Option<u64>,
    run_p99_ms: Option<u64>,
    wait_p50_ms: Option<u64>,
    wait_p95_ms: Option<u64>,
    wait_p99_ms: Option<u64>,
}

/// What ended of one task.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TaskStatsRow {
    task: String,
    success: u64,
    retry: u64,
    dead: u64,
    cancelled: u64,
    lost: u64,
    run_p50_ms: Option<u64>,
    run_p99_ms: Option<u64>,
    wait_p50_ms: Option<u64>,
    wait_p99_ms: Option<u64>,
}

fn percentile(times: &Distribution, percent: f64) -> Option<u64> {
    times.percentile(percent).map(span_ms)
}

impl StatsRowView {
    fn of(since_ms: u64, stats: &TaskStats) -> Self {
        Self {
            since_ms,
            success: stats.successes,
            retry: stats.retries,
            dead: stats.deaths,
            cancelled: stats.cancels,
            lost: stats.losses,
            run_p50_ms: percentile(&stats.run, 50.0),
            run_p95_ms: percentile(&stats.run, 95.0),
            run_p99_ms: percentile(&stats.run, 99.0),
            wait_p50_ms: percentile(&stats.wait, 50.0),
            wait_p95_ms: percentile(&stats.wait, 95.0),
            wait_p99_ms: percentile(&stats.wait, 99.0),
        }
    }
}

impl TaskStatsRow {
    fn of(task: String, stats: &TaskStats) -> Self {
        Self {
            task,
            success: stats.successes,
            retry: stats.retries,
            dead: stats.deaths,
            cancelled: stats.cancels,
            lost: stats.losses,
            run_p50_ms: percentile(&stats.run, 50.0),
            run_p99_ms: percentile(&stats.run, 99.0),
            wait_p50_ms: percentile(&stats.wait, 50.0),
            wait_p99_ms: percentile(&stats.wait, 99.0),
        }
    }
}

/// What ended in one queue or in several, in the last minutes, hours or days.
#[derive(Debug)]
pub(crate) struct StatsShown {
    sum: StatsSum,
    last: u32,
}

impl StatsShown {
    pub(crate) fn of(sum: StatsSum, last: u32) -> Self {
        Self { sum, last }
    }

    /// Returns one row for each minute, hour or day, the oldest first, also if nothing ended in it.
    pub(crate) fn rows(&self) -> Vec<StatsRowView> {
        let (length, idle) = (span_ms(self.sum.unit.length()), TaskStats::default());
        let known: BTreeMap<u64, &TaskStats> =
            self.sum.rows.iter().map(|(since, stats)| (at_ms(*since), stats)).collect();
        let last = self.until_ms() / length;
        let numbers = (last + 1).saturating_sub(u64::from(self.last))..=last;
        let row = |number: u64| {
            let since_ms = number * length;
            StatsRowView::of(since_ms, known.get(&since_ms).unwrap_or(&&idle))
        };
        numbers.map(row).collect()
    }

    pub(crate) fn by_task(&self) -> Vec<TaskStatsRow> {
        self.sum.tasks.iter().map(|(task, stats)| TaskStatsRow::of(task.clone(), stats)).collect()
    }

    pub(crate) fn until_ms(&self) -> u64 {
        at_ms(self.sum.until)
    }

    /// Returns the word of the unit.
    pub(crate) fn unit(&self) -> &'static str {
        match self.sum.unit {
            StatsUnit::Minute => "minute",
            StatsUnit::Hour => "hour",
            StatsUnit::Day => "day",
        }
    }
}
