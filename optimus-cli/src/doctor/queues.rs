//! Checks each queue: whether somebody serves it, and whether its tasks move.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::try_join;
use optimus_core::{
    Counts, Error, Inspector, PAGE_MAX, QueueName, ScheduleDetails, TaskRow, TaskState,
    WorkerDetails,
};

use super::{Finding, Level};
use crate::{failure::Failure, output::text, session::Session};

/// How many names are printed in a line.
const NAMES_MAX: usize = 5;

/// What is read of a queue.
struct Look {
    queue: QueueName,
    counts: Counts,
    workers: Vec<WorkerDetails>,
    /// The first ready tasks.
    first: Vec<TaskRow>,
}

/// Checks all queues.
pub(crate) async fn check(session: &Session<'_>, late: Duration) -> Result<Vec<Finding>, Failure> {
    let queues = session.queues(&[]).await?;
    let read = async |inspector: Inspector, queue: QueueName| -> Result<Look, Error> {
        let (counts, workers, page) = try_join!(
            inspector.counts(&queue),
            inspector.workers(&queue),
            inspector.list(&queue, TaskState::Ready, None, PAGE_MAX),
        )?;
        Ok(Look { queue, counts, workers, first: page.rows })
    };
    let (looks, unread) = session.each_readable(&queues, read).await?;
    let now = session.now().await?;
    let mut findings: Vec<Finding> =
        unread.into_iter().map(|text| Finding::warning("unreadable", text)).collect();
    let queues: Vec<QueueName> = looks.iter().map(|look| look.queue.clone()).collect();
    for look in &looks {
        findings.extend(look.check(now, late));
    }
    let schedules = schedules(session, &queues).await?;
    let (notes, warnings): (Vec<_>, Vec<_>) =
        schedules.into_iter().partition(|finding| finding.level == Level::Note);
    findings.extend(warnings);
    if looks.is_empty() && findings.is_empty() {
        findings.push(Finding::note("queues", "no task was submitted to this namespace"));
    } else if findings.is_empty() {
        let queues = text::count(looks.len() as u64, "queue");
        let unserved = looks.iter().filter(|look| look.live(now) == 0).count();
        let served = match unserved {
            0 => "served".to_owned(),
            // A queue whose tasks wait without a worker is a warning.
            _ => format!("{unserved} without a worker and without waiting tasks"),
        };
        findings.push(Finding::ok("queues", format!("{queues}: {served}, not paused, not late")));
    }
    findings.extend(notes);
    let dead: u64 = looks.iter().map(|look| look.counts.dead).sum();
    if dead > 0 {
        let dead = text::count(dead, "dead task");
        findings.push(Finding::note("dead", format!("{dead} kept: `optimus dead list`")));
    }
    Ok(findings)
}

impl Look {
    fn check(&self, now: DateTime<Utc>, late: Duration) -> Vec<Finding> {
        let Self { queue, counts, workers, first } = self;
        let mut findings = Vec::new();
        if counts.paused {
            let text = format!("queue {queue} is paused: `optimus queue resume {queue}` ends it");
            findings.push(Finding::warning("paused", text));
        }
        let waiting = counts.ready + counts.delayed + counts.retry + counts.blocked;
        let live = self.live(now);
        if waiting > 0 && live == 0 {
            let waiting = text::count(waiting, "task");
            let text = format!("queue {queue}: {waiting} waiting, and no worker serves the queue");
            findings.push(Finding::warning("unserved", text));
        }
        findings.extend(self.oldest(now, late).filter(|_| !counts.paused));
        let known: BTreeSet<&str> = workers
            .iter()
            .flat_map(|worker| &worker.description.tasks)
            .map(String::as_str)
            .collect();
        let names: BTreeSet<&str> = first.iter().filter_map(|row| row.task.as_deref()).collect();
        let strange: Vec<&str> = names.difference(&known).copied().take(NAMES_MAX).collect();
        if live > 0 && !strange.is_empty() {
            let text = format!(
                "queue {queue}: no worker knows {}: is a deploy under way, or a name changed?",
                strange.join(", ")
            );
            findings.push(Finding::warning("unknown", text));
        }
        let stale = workers.len() - live;
        if stale > 0 && live == 0 {
            let stale = text::count(stale as u64, "worker");
            let text = format!(
                "queue {queue}: the lease of {stale} is over, and no other worker takes the tasks \
                 back: start one"
            );
            findings.push(Finding::warning("stale", text));
        }
        findings
    }

    /// Returns how many workers serve the queue.
    fn live(&self, now: DateTime<Utc>) -> usize {
        self.workers.iter().filter(|worker| worker.lease_until > now).count()
    }

    /// Checks how long the first ready task waits.
    fn oldest(&self, now: DateTime<Utc>, late: Duration) -> Option<Finding> {
        let born = self.first.first()?.created?;
        let age = text::since(born, now);
        (age > late).then(|| {
            let (queue, age) = (&self.queue, text::duration(age));
            Finding::warning(
                "late",
                format!(
                    "queue {queue}: the first ready task was submitted {age} ago; `optimus queue \
                     show {queue}` says what it waits for"
                ),
            )
        })
    }
}

/// Finds schedules that are due and that no worker ticks, and those that are paused.
async fn schedules(session: &Session<'_>, queues: &[QueueName]) -> Result<Vec<Finding>, Failure> {
    let read = async |_: Inspector, queue: QueueName| -> Result<Vec<Finding>, Error> {
        let (mut findings, mut after) = (Vec::new(), None);
        loop {
            let page = session.client.schedules().list(&queue, after.as_ref(), PAGE_MAX).await?;
            let orphans = page.rows.iter().filter(|row| row.is_orphaned());
            findings.extend(orphans.map(|row| orphaned(&queue, &row.name)));
            findings.extend(page.rows.iter().filter_map(|row| paused(&queue, row)));
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
fn paused(queue: &QueueName, row: &ScheduleDetails) -> Option<Finding> {
    let ((_, by), name, why) = (row.paused.as_ref()?, &row.name, &row.paused_why);
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let text = format!(
        "schedule {name} of queue {queue} is paused by {by}{why}: `optimus schedule resume {name}` \
         ends it"
    );
    Some(Finding::note("paused_schedule", text))
}

fn orphaned(queue: &QueueName, name: &str) -> Finding {
    let text = format!(
        "schedule {name} of queue {queue} is due, and no worker ticks it; `optimus schedule \
         remove {name}` removes one that is no longer wanted"
    );
    Finding::warning("orphaned", text)
}
