//! Checks the schedules of queues: whether workers tick them, and whether they are paused.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use optimus_core::{Error, Inspector, PAGE_MAX, QueueName, ScheduleDetails};

use super::Finding;
use crate::{advice::advice, failure::Failure, output::text, pause::Pause, session::Session};

/// Finds schedules that are due and that no worker ticks, and those that are paused. No worker
/// serves the queues of `unserved`.
pub(crate) async fn check(
    session: &Session<'_>,
    queues: &[QueueName],
    unserved: &BTreeSet<&QueueName>,
    now: DateTime<Utc>,
) -> Result<Vec<Finding>, Failure> {
    let read = async |_: Inspector, queue: QueueName| -> Result<Vec<Finding>, Error> {
        let (mut findings, mut after) = (Vec::new(), None);
        loop {
            let page = session.client.schedules().list(&queue, after.as_ref(), PAGE_MAX).await?;
            let late = |row: &ScheduleDetails| overdue(&queue, row, unserved, now);
            findings.extend(page.rows.iter().filter_map(late));
            findings.extend(page.rows.iter().filter_map(|row| paused(&queue, row, now)));
            after = page.next;
            if after.is_none() {
                return Ok(findings);
            }
        }
    };
    let (found, unread) = session.each_readable(queues, read).await?;
    let unread = unread.into_iter().map(|text| Finding::warning("unreadable", text));
    Ok(found.into_iter().flatten().chain(unread).collect())
}

/// Somebody wants the pause, so it is no warning; it is easy to forget.
fn paused(queue: &QueueName, row: &ScheduleDetails, now: DateTime<Utc>) -> Option<Finding> {
    let (pause, name) = (Pause::of_schedule(row)?, &row.name);
    let text = format!(
        "schedule {name} of queue {queue} is {}: {} ends it",
        pause.at(now),
        advice("schedule resume", [name])
    );
    Some(Finding::note("paused_schedule", text))
}

/// Says that no worker ticks a schedule that is due.
fn overdue(
    queue: &QueueName,
    row: &ScheduleDetails,
    unserved: &BTreeSet<&QueueName>,
    now: DateTime<Utc>,
) -> Option<Finding> {
    let (name, next) = (&row.name, row.next?);
    let late = text::duration(text::since(next, now));
    if row.is_overdue() && unserved.contains(queue) {
        let text = format!(
            "schedule {name} of queue {queue} is {late} overdue: no worker serves the queue"
        );
        return Some(Finding::warning("overdue", text));
    }
    row.is_orphaned().then(|| {
        let text = format!(
            "schedule {name} of queue {queue} is {late} overdue, and no worker ticks it; {} \
             removes one that is no longer wanted",
            advice("schedule remove", [name])
        );
        Finding::warning("orphaned", text)
    })
}
