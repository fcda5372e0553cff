//! The page of the causes of deaths.

use chrono::{DateTime, Utc};

use super::{
    seen::{FailureLine, Seen},
    table::{Cell, Column, Order, Row, Table, chosen},
};
use crate::output::{paint::Tone, text};

const COLUMNS: &[Column] = &[
    Column::number("DEAD", 7),
    Column::number("LAST", 15),
    Column::text("QUEUE", 14),
    Column::text("TASK", 16).from(90),
    Column::rest("CAUSE"),
];

/// The first one is what the page begins with.
pub(super) const ORDERS: &[Order<FailureLine>] = &[
    Order { name: "dead", compare: |a, b| b.dead.cmp(&a.dead) },
    Order { name: "last", compare: |a, b| b.last.cmp(&a.last) },
    Order { name: "queue", compare: |a, b| a.queue.cmp(&b.queue) },
];

pub(super) fn table(seen: &Seen, order: usize, filter: &str) -> Table {
    let failures = seen.failures.as_deref();
    let lines = chosen(failures.unwrap_or_default(), &ORDERS[order], filter, |line| {
        vec![line.queue.as_str(), line.task.as_str(), line.cause.as_str()]
    });
    Table {
        columns: COLUMNS,
        rows: lines.into_iter().map(|line| row(line, seen.now)).collect(),
        all: failures.map_or(0, <[_]>::len),
        none: if failures.is_some() { "No task is dead." } else { "The causes are being read." },
    }
}

fn row(line: &FailureLine, now: DateTime<Utc>) -> Row {
    let cells = vec![
        Cell::alarm(line.dead, Tone::Bad),
        Cell::new(text::relative(line.last, now)),
        Cell::new(&line.queue),
        Cell::new(&line.task),
        Cell::new(&line.cause),
    ];
    Row { key: line.key.clone(), cells }
}
