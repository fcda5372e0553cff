//! The page of queues.

use super::{
    number,
    seen::{QueueLine, Seen},
    table::{Cell, Column, Order, Row, Table, chosen},
};
use crate::output::{paint::Tone, text};

const COLUMNS: &[Column] = &[
    Column::rest("QUEUE"),
    Column::number("READY", 7),
    Column::number("WORKING", 7),
    Column::number("DELAYED", 7).from(100),
    Column::number("BLOCKED", 7).from(100),
    Column::number("RETRY", 7),
    Column::number("DEAD", 7),
    Column::number("PER S", 7),
    Column::number("OLDEST", 11),
    Column::number("P50", 8).from(130),
    Column::number("P99", 8).from(130),
    Column::number("SLOTS", 6).from(130),
    Column::text("STATE", 8),
];

/// The first one is what the page begins with.
pub(super) const ORDERS: &[Order<QueueLine>] = &[
    Order { name: "ready", compare: |a, b| b.counts.ready.cmp(&a.counts.ready) },
    Order { name: "oldest", compare: |a, b| b.oldest.cmp(&a.oldest) },
    Order { name: "working", compare: |a, b| b.counts.working.cmp(&a.counts.working) },
    Order { name: "retry", compare: |a, b| b.counts.retry.cmp(&a.counts.retry) },
    Order { name: "dead", compare: |a, b| b.counts.dead.cmp(&a.counts.dead) },
    Order { name: "rate", compare: |a, b| b.rate.unwrap_or(0.0).total_cmp(&a.rate.unwrap_or(0.0)) },
    Order { name: "name", compare: |a, b| a.queue.cmp(&b.queue) },
];

pub(super) fn table(seen: &Seen, order: usize, filter: &str) -> Table {
    let lines = chosen(&seen.queues, &ORDERS[order], filter, |line| vec![line.queue.as_str()]);
    Table {
        columns: COLUMNS,
        rows: lines.into_iter().map(row).collect(),
        all: seen.queues.len(),
        none: "There is no queue yet: nobody has submitted a task.",
    }
}

fn row(line: &QueueLine) -> Row {
    let counts = &line.counts;
    let [p50, p99] = line.run.map(|time| Cell::or_dash(time.map(text::at_most)));
    let cells = vec![
        Cell::new(&line.queue),
        Cell::number(counts.ready),
        Cell::number(counts.working),
        Cell::number(counts.delayed),
        Cell::number(counts.blocked),
        Cell::alarm(counts.retry, Tone::Warning),
        Cell::alarm(counts.dead, Tone::Bad),
        Cell::or_dash(line.rate.map(number::rate)),
        Cell::or_dash(line.oldest.map(text::duration)),
        p50,
        p99,
        Cell::number(line.slots),
        state(line),
    ];
    Row { key: line.queue.clone(), cells }
}

fn state(line: &QueueLine) -> Cell {
    match line {
        QueueLine { problem: Some(_), .. } => Cell::new("unread").tone(Tone::Bad),
        _ if line.counts.paused => Cell::new("paused").tone(Tone::Warning),
        _ if line.slots == 0 && line.counts.ready + line.due > 0 => {
            Cell::new("unserved").tone(Tone::Warning)
        }
        _ => Cell::new(""),
    }
}
