//! `optimus stats`: what ended in queues, how long it took, and in total.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, ValueEnum};
use optimus_core::{Distribution, Error, Inspector, QueueName, Stats, StatsUnit, TaskStats};
use serde::Serialize;

use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    parse,
    queue_names::QueueNames,
    session::Session,
};

/// Show how many attempts ended in which way, and how long they ran and waited.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    queues: QueueNames,
    /// How far back to look: up to 2 hours by minutes, 14 days by hours, else 180 days by days.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse::duration)]
    last: Duration,
    /// What a row is: a task of a queue (`task`), or a minute, an hour or a day of it (`time`).
    #[arg(long, value_name = "ROW", default_value = "task")]
    by: By,
}

/// What a row of the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// All of the time for one task of a queue.
    Task,
    /// All tasks of a queue in one minute, hour or day.
    Time,
}

/// What ended of a task, or in a part of the time.
#[derive(Debug, Serialize)]
struct StatsLine {
    queue: QueueName,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(
        rename = "since_ms",
        skip_serializing_if = "Option::is_none",
        with = "chrono::serde::ts_milliseconds_option"
    )]
    since: Option<DateTime<Utc>>,
    #[serde(flatten)]
    stats: TaskStats,
}

impl StatsLine {
    fn what(&self) -> String {
        match (&self.task, self.since) {
            (Some(task), _) => task.clone(),
            (None, Some(since)) => since.to_rfc3339_opts(SecondsFormat::Secs, true),
            (None, None) => String::new(),
        }
    }
}

impl Row for StatsLine {
    const COLUMNS: &'static [Column] = &[
        Column::text("QUEUE"),
        Column::text("OF"),
        Column::number("SUCCEEDED"),
        Column::number("RETRIED"),
        Column::number("DIED"),
        Column::number("CANCELLED"),
        Column::number("LOST"),
        Column::number("RUN P50"),
        Column::number("RUN P95"),
        Column::number("WAIT P50"),
        Column::number("WAIT P95"),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let TaskStats { successes, retries, deaths, cancels, losses, run, wait, .. } = &self.stats;
        let bad = |count: u64, tone| match count {
            0 => Cell::number(count),
            _ => Cell::number(count).tone(tone),
        };
        vec![
            Cell::new(&self.queue),
            Cell::new(self.what()),
            Cell::number(*successes),
            bad(*retries, Tone::Warning),
            bad(*deaths, Tone::Bad),
            Cell::number(*cancels),
            bad(*losses, Tone::Warning),
            percentile(run, 50.0),
            percentile(run, 95.0),
            percentile(wait, 50.0),
            percentile(wait, 95.0),
        ]
    }
}

fn percentile(times: &Distribution, percent: f64) -> Cell {
    Cell::or_dash(times.percentile(percent).map(text::at_most))
}

pub(crate) async fn run(arguments: StatsArguments, session: &Session<'_>) -> Result<Exit, Failure> {
    let StatsArguments { queues, last, by } = arguments;
    let (unit, units) = unit_of(last)?;
    let named = queues.named();
    let queues = session.queues(named).await?;
    let read = async |inspector: Inspector, queue: QueueName| -> Result<_, Error> {
        let stats = inspector.stats(&queue, unit, units).await?;
        Ok(lines(&queue, &stats, by))
    };
    let rows: Vec<StatsLine> =
        session.each_queue(&queues, read).await?.into_iter().flatten().collect();
    session.known_if_empty(&rows, named).await?;
    let last = text::duration(last);
    let none = format!("No end is counted in the last {last}. Workers tell ends within a minute.");
    session.out.rows(&rows, session.now().await?, &none)?;
    Ok(Exit::Done)
}

/// Returns the shortest unit of which enough are kept, and how many of them.
fn unit_of(last: Duration) -> Result<(StatsUnit, u32), Failure> {
    let units = [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day];
    let count = |unit: StatsUnit| last.as_secs().div_ceil(unit.length().as_secs()).max(1);
    let found = units.into_iter().find(|unit| count(*unit) <= u64::from(unit.kept()));
    found
        .and_then(|unit| Some((unit, u32::try_from(count(unit)).ok()?)))
        .ok_or_else(|| Failure::usage("statistics are kept for 180 days; write --last 180d"))
}

fn lines(queue: &QueueName, stats: &Stats, by: By) -> Vec<StatsLine> {
    let line = |task, since, stats| StatsLine { queue: queue.clone(), task, since, stats };
    match by {
        By::Task => {
            let tasks = stats.by_task().into_iter();
            tasks.map(|(task, stats)| line(Some(task), None, stats)).collect()
        }
        By::Time => stats.rows.iter().map(|row| line(None, Some(row.since), row.total())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_shortest_that_is_kept_for_so_long() {
        let of = |text: &str| unit_of(parse::duration(text).unwrap()).unwrap();
        assert_eq!(of("1s"), (StatsUnit::Minute, 1));
        assert_eq!(of("2h"), (StatsUnit::Minute, 120));
        assert_eq!(of("3h"), (StatsUnit::Hour, 3));
        assert_eq!(of("14d"), (StatsUnit::Hour, 336));
        assert_eq!(of("15d"), (StatsUnit::Day, 15));
        assert_eq!(of("180d"), (StatsUnit::Day, 180));
        assert!(unit_of(Duration::from_secs(181 * 86_400)).is_err());
    }
}
