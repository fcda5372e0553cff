//! Lanes, limits, groups, schedules, sharded functions, sources and dispensers: lists of the same
//! form, and acts on them.

mod act;
mod limit_act;
mod of_namespace;
mod of_queue;

use optimus_core::{Error, QueueName};
use serde::Deserialize;
use utoipa::IntoParams;

pub(crate) use self::{
    act::{__path_act, act},
    of_namespace::{__path_dispensers, __path_shards, __path_sources, dispensers, shards, sources},
    of_queue::{
        __path_groups, __path_lanes, __path_limits, __path_schedules, groups, lanes, limits,
        schedules,
    },
};
use crate::{
    api::page::Page,
    problem::Problem,
    seat::Seat,
    view::{QueueRow, ThingRow},
};

/// In how many queues one page looks.
const QUEUES_A_PAGE: usize = 50;
/// A page ends behind the queue with which it has so many rows.
const ROWS_A_PAGE: usize = 50;
/// How many rows of one queue are listed.
const ROWS_A_QUEUE: usize = 100;

/// Whose lanes, limits, groups or schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThingsOf {
    /// Those of this queue. Without it, those of all queues: a page looks in 50 queues, or in
    /// fewer if these have 50 rows.
    queue: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// The queues of a page, where the next page begins, and whether the one queue was asked for.
type Queues = (Vec<QueueName>, Option<String>, bool);

/// Returns the queues of a page.
async fn queues_of(
    seat: &Seat,
    asked: &ThingsOf,
    may_have: fn(&QueueRow) -> bool,
) -> Result<Queues, Problem> {
    if let Some(queue) = asked.queue.as_deref().filter(|queue| !queue.is_empty()) {
        return Ok((vec![seat.queue(queue)?], None, true));
    }
    let snapshot = seat.app.sampling.snapshot().await?;
    let after = asked.after.as_deref().unwrap_or_default();
    let entries = snapshot.seen_by(&seat.identity);
    let rows = entries.map(|entry| &entry.row).filter(|row| row.queue.as_str() > after);
    let rows = rows.filter(|row| row.problem.is_none() && may_have(row));
    let mut names = rows.map(|row| row.queue.clone());
    let page: Vec<String> = names.by_ref().take(QUEUES_A_PAGE).collect();
    let next = names.next().and_then(|_| page.last().cloned());
    Ok((page.iter().filter_map(|name| QueueName::new(name).ok()).collect(), next, false))
}

/// Returns the rows of the first of these queues, until the page is full, and where the next one
/// begins. A queue that can't be read, because another program has written a key of it, has a row
/// that says so.
async fn rows_of<R: Future<Output = Result<Vec<ThingRow>, Error>>>(
    (queues, next, is_asked_for): Queues,
    read: impl Fn(QueueName) -> R,
) -> Result<Page<ThingRow>, Problem> {
    let (mut rows, last) = (Vec::new(), queues.len().saturating_sub(1));
    for (place, queue) in queues.into_iter().enumerate() {
        match read(queue.clone()).await {
            Ok(found) => rows.extend(found),
            Err(problem) if is_asked_for || problem.is_unavailable() => return Err(problem.into()),
            Err(problem) => rows.push(unreadable_row(&queue, &problem)),
        }
        if rows.len() >= ROWS_A_PAGE && place < last {
            return Ok(Page::new(rows, Some(queue.to_string())));
        }
    }
    Ok(Page::new(rows, next))
}

/// Says that not all things were read.
fn more_row(queue: Option<&QueueName>, state: String) -> ThingRow {
    ThingRow {
        title: "more".to_owned(),
        name: String::new(),
        queue: queue.map(QueueName::to_string),
        state,
        facts: Vec::new(),
        acts: Vec::new(),
    }
}

fn unreadable_row(queue: &QueueName, problem: &Error) -> ThingRow {
    ThingRow {
        title: "unreadable".to_owned(),
        name: String::new(),
        queue: Some(queue.to_string()),
        state: format!("queue {queue} can't be read: {problem}"),
        facts: Vec::new(),
        acts: Vec::new(),
    }
}
