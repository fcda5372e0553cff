//! Lanes, limits, groups, schedules, sharded functions, sources and dispensers: lists of the same
//! form, and acts on them.

mod act;
mod of_namespace;
mod of_queue;

use optimus_core::{DateTime, QueueName, Utc};
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

/// Returns the queues of a page, and where the next page begins.
async fn queues_of(
    seat: &Seat,
    asked: &ThingsOf,
    may_have: fn(&QueueRow) -> bool,
) -> Result<(Vec<QueueName>, Option<String>), Problem> {
    if let Some(queue) = asked.queue.as_deref().filter(|queue| !queue.is_empty()) {
        return Ok((vec![seat.queue(queue)?], None));
    }
    let snapshot = seat.app.sampling.snapshot().await?;
    let after = asked.after.as_deref().unwrap_or_default();
    let entries = snapshot.seen_by(&seat.identity);
    let rows = entries.map(|entry| &entry.row).filter(|row| row.queue.as_str() > after);
    let rows = rows.filter(|row| row.problem.is_none() && may_have(row));
    let mut names = rows.map(|row| row.queue.clone());
    let page: Vec<String> = names.by_ref().take(QUEUES_A_PAGE).collect();
    let next = names.next().and_then(|_| page.last().cloned());
    Ok((page.iter().filter_map(|name| QueueName::new(name).ok()).collect(), next))
}

/// Returns the rows of the first of these queues, until the page is full, and where the next one
/// begins.
async fn rows_of<R: Future<Output = Result<Vec<ThingRow>, Problem>>>(
    (queues, next): (Vec<QueueName>, Option<String>),
    read: impl Fn(QueueName) -> R,
) -> Result<Page<ThingRow>, Problem> {
    let (mut rows, last) = (Vec::new(), queues.len().saturating_sub(1));
    for (place, queue) in queues.into_iter().enumerate() {
        rows.extend(read(queue.clone()).await?);
        if rows.len() >= ROWS_A_PAGE && place < last {
            return Ok(Page::new(rows, Some(queue.to_string())));
        }
    }
    Ok(Page::new(rows, next))
}

/// Returns a time as people and programs read it.
fn instant(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
