//! What ended in a queue, by task and by minutes, hours or days: [`Stats`].

use std::{collections::BTreeMap, mem, time::Duration};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    distribution::{Distribution, Scale, numbers_of},
    platform::instant,
};

/// The name under which all tasks of a queue count that are not among the first 64 of a minute, an
/// hour or a day.
pub const OTHER_TASKS: &str = "*";

/// The length of a row of [`Stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StatsUnit {
    /// A minute. The last 120 minutes in which something ended are kept.
    Minute,
    /// An hour. The last 336 hours in which something ended are kept: two weeks or more.
    Hour,
    /// A day of UTC. The last 180 days on which something ended are kept.
    Day,
}

impl StatsUnit {
    /// Returns how many rows are kept.
    pub fn kept(self) -> u32 {
        match self {
            Self::Minute => 120,
            Self::Hour => 336,
            Self::Day => 180,
        }
    }

    /// Returns the length of a row.
    pub fn length(self) -> Duration {
        Duration::from_secs(60 * self.minutes())
    }

    fn minutes(self) -> u64 {
        match self {
            Self::Minute => 1,
            Self::Hour => 60,
            Self::Day => 24 * 60,
        }
    }

    /// Returns the name of the key with the finished rows.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Minute => "minutes",
            Self::Hour => "hours",
            Self::Day => "days",
        }
    }

    /// Returns when the unit of this number begins.
    pub(crate) fn begin_of(self, number: u64) -> DateTime<Utc> {
        instant(number * self.minutes() * 60_000)
    }

    fn scale(self) -> Scale {
        match self {
            Self::Minute => Scale::Fine,
            Self::Hour | Self::Day => Scale::Coarse,
        }
    }
}

/// What ended in a queue, by minutes, hours or days.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The length of a row.
    pub unit: StatsUnit,
    /// The time of the read, by Redis' clock.
    pub until: DateTime<Utc>,
    /// The rows, the latest last. A minute, hour or day in which nothing ended has no row.
    pub rows: Vec<StatsRow>,
}

/// What ended in one minute, hour or day.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StatsRow {
    /// The begin of the row, by Redis' clock.
    pub since: DateTime<Utc>,
    /// What ended, by the name of the task; see [`OTHER_TASKS`].
    pub tasks: BTreeMap<String, TaskStats>,
}

/// How many attempts at a task ended in each way, and how long they took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskStats {
    /// Attempts that succeeded.
    pub successes: u64,
    /// Attempts that failed or were lost, and after which another one follows.
    pub retries: u64,
    /// Tasks that died.
    pub deaths: u64,
    /// Tasks that were cancelled while a worker had them.
    pub cancels: u64,
    /// Attempts that were lost with their worker. Each of them counts as a retry, a death or a
    /// cancel, too.
    pub losses: u64,
    /// Attempts that ended with a [`Snooze`](crate::Snooze).
    pub snoozes: u64,
    /// How long the attempts ran, whatever their end. Lost ones are not among them.
    pub run: Distribution,
    /// How long the tasks had waited at their first attempt, since their submit.
    pub wait: Distribution,
}

impl Stats {
    /// Returns the sum over all rows and tasks.
    pub fn total(&self) -> TaskStats {
        sum(self.rows.iter().flat_map(|row| row.tasks.values()))
    }

    /// Returns the sum over all rows for each task.
    pub fn by_task(&self) -> BTreeMap<String, TaskStats> {
        let mut sums: BTreeMap<String, TaskStats> = BTreeMap::new();
        for (task, stats) in self.rows.iter().flat_map(|row| &row.tasks) {
            sums.entry(task.clone()).or_default().add(stats);
        }
        sums
    }

    /// Makes the rows of the last `last` units from the stored ones.
    pub(crate) fn of(unit: StatsUnit, last: u32, stored: &StoredRows) -> Self {
        let mut rows: BTreeMap<u64, BTreeMap<String, TaskStats>> = BTreeMap::new();
        stored.each_line(unit, last, |number, task, line, scale| {
            let tasks = rows.entry(number).or_default();
            // Most tasks are there already, and a lookup needs no copy of the name.
            match tasks.get_mut(task) {
                Some(stats) => stats.add_line(line, scale),
                None => drop(tasks.insert(task.to_owned(), TaskStats::read(line, scale))),
            }
        });
        let rows = rows
            .into_iter()
            .map(|(number, tasks)| StatsRow { since: unit.begin_of(number), tasks });
        Self { unit, until: instant(stored.now_ms), rows: rows.collect() }
    }
}

/// The rows of a queue as they are stored, at one moment.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    /// The clock of Redis.
    pub(crate) now_ms: u64,
    /// The open rows of the minute, the hour and the day; empty if there is none.
    pub(crate) open: [String; 3],
    /// The finished rows, the latest last.
    pub(crate) finished: Vec<String>,
}

impl StoredRows {
    /// Calls `take` with each line of the last `last` units: the number of the unit, the task, and
    /// its numbers. A row is in only one of the lists, so all lines of a unit add up.
    pub(crate) fn each_line(
        &self,
        unit: StatsUnit,
        last: u32,
        mut take: impl FnMut(u64, &str, &str, Scale),
    ) {
        let parts = [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day];
        let open = parts.into_iter().zip(&self.open);
        let open = open.filter(|(part, _)| part.minutes() <= unit.minutes());
        let present = self.now_ms / 60_000 / unit.minutes();
        for (part, text) in open.chain(self.finished.iter().map(|text| (unit, text))) {
            let Some((number, lines)) = read_row(text) else { continue };
            let number = number * part.minutes() / unit.minutes();
            if number + u64::from(last) <= present {
                continue;
            }
            for (task, line) in lines {
                take(number, task, line, part.scale());
            }
        }
    }
}

impl StatsRow {
    /// Returns the sum over all tasks.
    pub fn total(&self) -> TaskStats {
        sum(self.tasks.values())
    }
}

impl TaskStats {
    /// Returns how many attempts ended. A task that died or was cancelled before its first attempt
    /// counts as one.
    pub fn ended(&self) -> u64 {
        self.successes + self.retries + self.deaths + self.cancels + self.snoozes
    }

    /// Adds the counts of another task or of another time.
    pub fn add(&mut self, other: &Self) {
        self.successes += other.successes;
        self.retries += other.retries;
        self.deaths += other.deaths;
        self.cancels += other.cancels;
        self.losses += other.losses;
        self.snoozes += other.snoozes;
        self.run.add(&other.run);
        self.wait.add(&other.wait);
    }

    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let (mut run, mut wait) = (mem::take(&mut self.run), mem::take(&mut self.wait));
        run.clear();
        wait.clear();
        *self = Self { run, wait, ..Self::default() };
    }

    /// Counts how long an attempt ran, and how long its task had waited. For the worker.
    #[doc(hidden)]
    pub fn record(&mut self, run: Option<Duration>, wait: Option<Duration>) {
        if let Some(run) = run {
            self.run.record(run);
        }
        if let Some(wait) = wait {
            // Waits are known to the ms. So the row of a queue without a backlog is short.
            self.wait.record(wait.max(Duration::from_millis(1)));
        }
    }

    /// Returns the line of a row; `lua/include/tally_row.lua` describes it.
    pub(crate) fn line(&self, task: &str) -> String {
        let Self { successes, retries, deaths, cancels, losses, snoozes, run, wait } = self;
        format!(
            "{task} {successes},{retries},{deaths},{cancels},{losses},{snoozes},{},{} {} {}",
            run.sum_us(),
            wait.sum_us(),
            run.text(),
            wait.text()
        )
    }

    /// Reads what follows the task in a line; what can't be read counts as nothing.
    fn read(line: &str, scale: Scale) -> Self {
        let mut stats = Self::default();
        stats.add_line(line, scale);
        stats
    }

    /// Adds what follows the task in a line.
    pub(crate) fn add_line(&mut self, line: &str, scale: Scale) {
        let mut words = line.split(' ');
        let mut counts = [0; 8];
        for (count, number) in counts.iter_mut().zip(numbers_of(words.next().unwrap_or_default())) {
            *count = number;
        }
        let [successes, retries, deaths, cancels, losses, snoozes, run_us, wait_us] = counts;
        self.successes += successes;
        self.retries += retries;
        self.deaths += deaths;
        self.cancels += cancels;
        self.losses += losses;
        self.snoozes += snoozes;
        self.run.add_text(words.next().unwrap_or_default(), run_us, scale);
        self.wait.add_text(words.next().unwrap_or_default(), wait_us, scale);
    }
}

/// Returns the number of a row, and its lines by task.
pub(crate) fn read_row(text: &str) -> Option<(u64, impl Iterator<Item = (&str, &str)>)> {
    let mut lines = text.split('\n');
    let number = lines.next()?.parse().ok()?;
    Some((number, lines.filter_map(|line| line.split_once(' '))))
}

fn sum<'a>(parts: impl Iterator<Item = &'a TaskStats>) -> TaskStats {
    let mut sum = TaskStats::default();
    parts.for_each(|part| sum.add(part));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_rows_add_to_the_row_in_which_their_time_is() {
        let row = |number: u64| format!("{number}\nsend 1,0,0,0,0,0,5,0 4:1 -");
        // Two days, of which the second has begun; its first hour is over, but is still open.
        let (day, hour, minute) = (row(1), row(24 * 2), row(60 * 24 * 2 + 60));
        let (open, now_ms) = ([minute, hour, day], 86_400_000 * 2 + 3_700_000);
        let counts = |unit, last, finished: &[String]| -> Vec<(i64, u64)> {
            let stored = StoredRows { now_ms, open: open.clone(), finished: finished.to_vec() };
            let stats = Stats::of(unit, last, &stored);
            let row = |row: &StatsRow| (row.since.timestamp(), row.total().successes);
            stats.rows.iter().map(row).collect()
        };
        let (day, hour) = (86_400, 3_600);
        let days = counts(StatsUnit::Day, 180, &[row(0)]);
        assert_eq!(days, [(0, 1), (day, 1), (2 * day, 2)]);
        assert_eq!(counts(StatsUnit::Day, 1, &[row(0)]), [(2 * day, 2)]);
        let hours = counts(StatsUnit::Hour, 2, &[row(47)]);
        assert_eq!(hours, [(2 * day, 1), (2 * day + hour, 1)]);
        assert_eq!(counts(StatsUnit::Minute, 5, &[]), [(2 * day + hour, 1)]);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut stats = TaskStats { successes: 3, snoozes: 2, ..TaskStats::default() };
        stats.record(Some(Duration::from_millis(7)), Some(Duration::from_secs(2)));
        let line = stats.line("send");
        let (task, rest) = line.split_once(' ').unwrap();
        assert_eq!((task, TaskStats::read(rest, Scale::Fine)), ("send", stats));
        assert_eq!(TaskStats::read("what ever", Scale::Fine), TaskStats::default());
    }
}
