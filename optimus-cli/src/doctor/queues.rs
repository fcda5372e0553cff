//! Checks each queue: whether somebody serves it, and whether its tasks move.

use std::{collections::BTreeSet, slice, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::{future::try_join_all, try_join};
use optimus_core::{
    Counts, Error, Explanation, Inspector, LimitSetters, Obstacle, PAGE_MAX, QueueName, StatsUnit,
    TaskId, TaskRecord, TaskRow, TaskState, TaskStats, WorkerDetails,
    broker::{Broker, Keep},
};

use super::{
    Finding, Level, schedules, unused,
    waits::{Waiter, Waits, waits_since},
    workers,
};
use crate::{advice::advice, failure::Failure, output::text, session::Session, unknown::Unknown};

/// What is read of a queue.
struct Look {
    queue: QueueName,
    counts: Counts,
    workers: Vec<WorkerDetails>,
    /// What keeps its tasks waiting.
    why: Explanation,
    /// The first ready tasks.
    first: Vec<TaskRow>,
    /// Since when the very first one is ready, if it was not ready at its submit, or if it is not
    /// among the tasks that were read.
    ready_since: Option<DateTime<Utc>>,
    /// The first delayed tasks. A task that no worker knows is nearly always one of them, because
    /// each worker gives it back for later.
    delayed: Vec<TaskRow>,
    /// Some of the blocked tasks.
    blocked: Vec<TaskRow>,
    /// Since when tasks wait for a lane or a limit, where they have waited longest.
    blocked_since: Option<DateTime<Utc>>,
    /// What some of the blocked tasks wait for, if some wait for other tasks.
    waiters: Vec<Waiter>,
    /// What ended in the last [`MINUTES`].
    ended: TaskStats,
}

/// A queue of which more than this many tasks have died in so many minutes is a finding, as is
/// `OptimusTasksDie` of `docs/monitoring/alerts.yaml`.
const DEATHS_MAX: u64 = 10;
const MINUTES: u32 = 10;

/// How many blocked tasks are read to name those that wait for a task.
const WAITERS_MAX: usize = 64;

/// Checks all queues.
pub(crate) async fn check(session: &Session<'_>, late: Duration) -> Result<Vec<Finding>, Failure> {
    let (queues, broker) = (session.queues(&[]).await?, session.client.broker());
    let read = |inspector, queue| look(inspector, broker, queue);
    let (looks, unread) = session.each_readable(&queues, read).await?;
    let now = session.now().await?;
    let mut findings: Vec<Finding> =
        unread.into_iter().map(|text| Finding::warning("unreadable", text)).collect();
    let queues: Vec<QueueName> = looks.iter().map(|look| look.queue.clone()).collect();
    let has_set = |obstacle: &Obstacle| matches!(obstacle, Obstacle::Limit(limit) if limit.is_set);
    let setters = if looks.iter().any(|look| look.why.obstacles.iter().any(has_set)) {
        session.inspector().limit_setters().await?
    } else {
        LimitSetters::default()
    };
    for look in &looks {
        findings.extend(look.check(now, late, &setters));
    }
    findings.extend(workers::check(looks.iter().map(|look| (&look.queue, &look.why))));
    let unserved: BTreeSet<&QueueName> =
        looks.iter().filter(|look| look.live(now) == 0).map(|look| &look.queue).collect();
    findings.extend(schedules::check(session, &queues, &unserved, now).await?);
    let (notes, warnings): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.level == Level::Note);
    let mut findings = warnings;
    if looks.is_empty() && findings.is_empty() {
        findings.push(unused::check(session).await?);
    } else if findings.is_empty() {
        let queues = text::count(looks.len() as u64, "queue");
        let served = match unserved.len() {
            0 => "served".to_owned(),
            // A queue whose tasks wait without a worker is a warning.
            count => format!("{count} without a worker and without waiting tasks"),
        };
        findings.push(Finding::ok("queues", format!("{queues}: {served}, not paused, not late")));
    }
    findings.extend(notes);
    let dead: u64 = looks.iter().map(|look| look.counts.dead).sum();
    if dead > 0 {
        let dead = text::count(dead, "dead task");
        findings.push(Finding::note("dead", format!("{dead} kept: `optimus dead list`")));
    }
    findings.extend(looks.iter().filter_map(Look::full));
    Ok(findings)
}

/// Reads what a queue has.
async fn look(inspector: Inspector, broker: &Broker, queue: QueueName) -> Result<Look, Error> {
    let (counts, workers, why, stats) = try_join!(
        inspector.counts(&queue),
        inspector.workers(&queue),
        inspector.explain_queue(&queue),
        inspector.stats(&queue, StatsUnit::Minute, MINUTES),
    )?;
    let page = async |state, count: u64| match (state, count) {
        (TaskState::Blocked | TaskState::Delayed, 0) => Ok(Vec::new()),
        _ => inspector.list(&queue, state, None, PAGE_MAX).await.map(|page| page.rows),
    };
    let first = page(TaskState::Ready, counts.ready).await?;
    let delayed = page(TaskState::Delayed, counts.delayed).await?;
    let blocked = page(TaskState::Blocked, counts.blocked).await?;
    let ready_since = match first.first() {
        Some(row) => broker.ready_since(&row.id).await?,
        // More entries of cancelled tasks than a page passes are before the first ready one.
        None if counts.ready > 0 => {
            let seen = inspector.overview(slice::from_ref(&queue)).await?;
            seen.first().and_then(|seen| seen.oldest_since)
        }
        None => None,
    };
    let blocked_since =
        if blocked.is_empty() { None } else { broker.blocked_since(&queue).await? };
    let is_unmet = |why: &Obstacle| matches!(why, Obstacle::Prerequisites { .. });
    let waiters = if why.obstacles.iter().any(is_unmet) {
        waiters(&inspector, &blocked).await?
    } else {
        Vec::new()
    };
    Ok(Look {
        queue,
        counts,
        workers,
        why,
        first,
        ready_since,
        delayed,
        blocked,
        blocked_since,
        waiters,
        ended: stats.total(),
    })
}

/// Reads what the first of these tasks wait for.
async fn waiters(inspector: &Inspector, rows: &[TaskRow]) -> Result<Vec<Waiter>, Error> {
    let reads = rows.iter().take(WAITERS_MAX).map(|row| inspector.get(&row.id));
    let records = try_join_all(reads).await?.into_iter().flatten();
    let records = records.filter_map(|task| Some((task.id, task.record?.ok()?)));
    let waiter = |(id, record): (TaskId, TaskRecord)| Waiter {
        is_group: record.member.is_some(),
        step: record.member.map_or(id, |member| member.group),
        after: record.after.map_or_else(Vec::new, |after| after.prerequisites),
    };
    Ok(records.map(waiter).collect())
}

impl Look {
    /// Says that workers remove ended tasks because there are too many.
    fn full(&self) -> Option<Finding> {
        let (queue, counts) = (&self.queue, &self.counts);
        let kept = counts.dead.max(counts.cancelled);
        (kept >= Keep::DEFAULT.tasks as u64 && counts.purged > 0).then(|| {
            let text = format!(
                "queue {queue} keeps {} dead and {} cancelled tasks, and has removed {} so far, \
                 because they were too many or too old: a removed task can't be requeued; \
                 WorkerBuilder::keep_ended sets how many are kept",
                text::number(counts.dead),
                text::number(counts.cancelled),
                text::number(counts.purged)
            );
            Finding::note("removed", text)
        })
    }

    fn check(&self, now: DateTime<Utc>, late: Duration, setters: &LimitSetters) -> Vec<Finding> {
        let Self { queue, counts, workers, why, blocked, .. } = self;
        let waits = Waits {
            queue,
            why,
            blocked: counts.blocked,
            now,
            late,
            setters,
            waiters: &self.waiters,
        };
        let mut findings = waits.findings();
        let is_paused = counts.paused || findings.iter().any(|one| one.check == "paused");
        let waiting = counts.ready + counts.delayed + counts.retry + counts.blocked;
        let live = self.live(now);
        if waiting > 0 && live == 0 {
            let waiting = text::count(waiting, "task");
            let text = format!("queue {queue}: {waiting} waiting, and no worker serves the queue");
            findings.push(Finding::warning("unserved", text));
        }
        findings.extend(self.oldest(now, late).filter(|_| !is_paused));
        findings.extend(waits.blocked(blocked, self.blocked_since).filter(|_| !counts.paused));
        findings.extend(self.unknown().filter(|_| live > 0));
        findings.extend(self.dying());
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

    /// Says that many tasks have died lately.
    fn dying(&self) -> Option<Finding> {
        let (queue, TaskStats { deaths, successes, .. }) = (&self.queue, &self.ended);
        (*deaths > DEATHS_MAX).then(|| {
            let text = format!(
                "queue {queue}: {} died in the last {MINUTES} min, while {} succeeded; {} has the \
                 causes",
                text::count(*deaths, "task"),
                text::number(*successes),
                advice("dead fingerprints", [queue])
            );
            Finding::warning("dying", text)
        })
    }

    /// Names the tasks that no worker of the queue has, of the first ready and delayed ones.
    fn unknown(&self) -> Option<Finding> {
        let rows = self.first.iter().chain(&self.delayed);
        Unknown::of(&self.workers, rows).map(|unknown| {
            let text = format!(
                "queue {}: no worker knows {}: is a deploy under way, or a name changed? Start a \
                 worker that has the task, or each such task is dead once the `misfit_grace` of \
                 the workers is over, which is an hour unless they set another one; then \
                 `optimus task retry` runs it again",
                self.queue, unknown
            );
            Finding::warning("unknown", text)
        })
    }

    /// Returns how many workers serve the queue.
    fn live(&self, now: DateTime<Utc>) -> usize {
        self.workers.iter().filter(|worker| worker.lease_until > now).count()
    }

    /// Checks how long the first ready task waits.
    fn oldest(&self, now: DateTime<Utc>, late: Duration) -> Option<Finding> {
        let since = match self.first.first() {
            Some(row) => waits_since(row, self.ready_since)?,
            None => self.ready_since?,
        };
        let age = text::since(since, now);
        (age > late).then(|| {
            let (queue, age) = (&self.queue, text::duration(age));
            Finding::warning(
                "late",
                format!(
                    "queue {queue}: the first ready task has waited for up to {age}; {} says what \
                     it waits for",
                    advice("queue show", [queue])
                ),
            )
        })
    }
}
