//! What ended, by time or by task.

use std::collections::BTreeMap;

use optimus_core::{Distribution, Stats, StatsUnit, TaskStats};
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

/// What ended in several queues.
#[derive(Debug)]
pub(crate) struct StatsSum {
    unit: StatsUnit,
    last: u32,
    until_ms: u64,
    rows: BTreeMap<u64, TaskStats>,
    tasks: BTreeMap<String, TaskStats>,
}

impl StatsSum {
    pub(crate) fn new(unit: StatsUnit, last: u32) -> Self {
        let last = last.clamp(1, unit.kept());
        Self { unit, last, until_ms: 0, rows: BTreeMap::new(), tasks: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, stats: &Stats) {
        self.until_ms = self.until_ms.max(at_ms(stats.until));
        for row in &stats.rows {
            self.rows.entry(at_ms(row.since)).or_default().add(&row.total());
        }
        for (task, stats) in stats.by_task() {
            self.tasks.entry(task).or_default().add(&stats);
        }
    }

    /// Returns one row for each minute, hour or day, the oldest first, also if nothing ended in it.
    pub(crate) fn rows(&self) -> Vec<StatsRowView> {
        let (length, idle) = (span_ms(self.unit.length()), TaskStats::default());
        let last = self.until_ms / length;
        let numbers = (last + 1).saturating_sub(u64::from(self.last))..=last;
        let row = |number: u64| {
            let since_ms = number * length;
            StatsRowView::of(since_ms, self.rows.get(&since_ms).unwrap_or(&idle))
        };
        numbers.map(row).collect()
    }

    pub(crate) fn by_task(&self) -> Vec<TaskStatsRow> {
        self.tasks.iter().map(|(task, stats)| TaskStatsRow::of(task.clone(), stats)).collect()
    }

    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Returns the word of the unit.
    pub(crate) fn unit(&self) -> &'static str {
        match self.unit {
            StatsUnit::Minute => "minute",
            StatsUnit::Hour => "hour",
            StatsUnit::Day => "day",
        }
    }
}
