//! The page of processes, and what the chosen one runs.

use chrono::{DateTime, Utc};

use super::{
    seen::{ProcessLine, RunLine, Seen},
    table::{Cell, Column, Order, Row, Table, chosen},
};
use crate::{
    command::percent,
    output::{paint::Tone, text},
};

const COLUMNS: &[Column] = &[
    Column::rest("HOST"),
    Column::number("PID", 7),
    Column::number("BUSY", 9),
    Column::number("MEMORY", 7),
    Column::number("CPU", 7),
    Column::number("UP", 11),
    Column::number("LONGEST RUN", 11),
    Column::text("STATE", 11).from(90),
    Column::text("VERSION", 10).from(110),
    Column::text("QUEUES", 24).from(140),
];

const RUNNING: &[Column] = &[
    Column::text("TASK", 16),
    Column::rest("ID"),
    Column::number("TRY", 4),
    Column::number("RUNS FOR", 11),
    Column::text("PROGRESS", 24).from(100),
];

/// The first one is what the page begins with.
pub(super) const ORDERS: &[Order<ProcessLine>] = &[
    Order { name: "busy", compare: |a, b| b.busy.cmp(&a.busy) },
    Order { name: "longest run", compare: |a, b| since(a).cmp(&since(b)) },
    Order { name: "memory", compare: |a, b| b.rss_bytes.cmp(&a.rss_bytes) },
    Order { name: "cpu", compare: |a, b| b.cpu.unwrap_or(0.0).total_cmp(&a.cpu.unwrap_or(0.0)) },
    Order { name: "host", compare: |a, b| (&a.host, a.pid).cmp(&(&b.host, b.pid)) },
];

/// Returns since when the process runs its longest task; one that runs nothing is the last.
fn since(line: &ProcessLine) -> (bool, Option<DateTime<Utc>>) {
    let since = line.running.first().map(|task| task.since);
    (since.is_none(), since)
}

pub(super) fn table(seen: &Seen, order: usize, filter: &str) -> Table {
    let lines = chosen(&seen.processes, &ORDERS[order], filter, |line| {
        let queues = line.queues.iter().map(String::as_str);
        [line.host.as_str(), line.id.as_str()].into_iter().chain(queues).collect()
    });
    Table {
        columns: COLUMNS,
        rows: lines.into_iter().map(|line| row(line, seen.now)).collect(),
        all: seen.processes.len(),
        none: "No process runs a worker.",
    }
}

fn row(line: &ProcessLine, now: DateTime<Utc>) -> Row {
    let longest = line.running.first().map(|task| text::duration(text::since(task.since, now)));
    let cells = vec![
        Cell::new(&line.host),
        Cell::new(line.pid.to_string()),
        Cell::new(format!("{}/{}", line.busy, line.slots)),
        Cell::or_dash(line.rss_bytes.map(text::size)),
        Cell::or_dash(line.cpu.map(percent)),
        Cell::new(text::duration(text::since(line.started, now))),
        Cell::or_dash(longest),
        Cell::new(line.mode).tone(Tone::Warning),
        Cell::new(&line.version),
        Cell::new(line.queues.join(", ")),
    ];
    Row { key: line.id.clone(), cells }
}

/// Returns what a process runs.
pub(super) fn running(seen: &Seen, process: &str) -> Option<Table> {
    let line = seen.processes.iter().find(|line| line.id == process)?;
    let row = |task: &RunLine| Row {
        key: task.id.clone(),
        cells: vec![
            Cell::new(&task.task),
            Cell::new(&task.id),
            Cell::new(task.attempt.to_string()),
            Cell::new(text::duration(text::since(task.since, seen.now))),
            Cell::new(&task.progress),
        ],
    };
    Some(Table {
        columns: RUNNING,
        rows: line.running.iter().map(row).collect(),
        all: line.busy,
        none: "It runs nothing.",
    })
}
