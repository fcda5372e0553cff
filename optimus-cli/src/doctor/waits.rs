//! Checks what keeps the tasks of a queue waiting: [`Waits`].

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use optimus_core::{
    Explanation, Gate, LimitDetails, LimitSetters, Obstacle, Prerequisite, PrerequisiteDetails,
    QueueName, Shut, TaskId, TaskRow, TaskState,
};

use super::Finding;
use crate::{
    advice::{advice, retry},
    limit_setting::LimitSetting,
    output::text,
};

/// How many steps to cancel are named.
const NAMED_MAX: usize = 4;

/// A task that waits, or its group.
pub(crate) struct Waiter {
    pub(crate) step: TaskId,
    /// Whether it is a group. What waits for a group that is cancelled is cancelled, too.
    pub(crate) is_group: bool,
    /// What it waits for.
    pub(crate) after: Vec<Prerequisite>,
}

/// What keeps the tasks of a queue waiting.
pub(crate) struct Waits<'a> {
    pub(crate) queue: &'a QueueName,
    pub(crate) why: &'a Explanation,
    /// How many of its tasks are blocked.
    pub(crate) blocked: u64,
    pub(crate) now: DateTime<Utc>,
    /// How long tasks may wait.
    pub(crate) late: Duration,
    pub(crate) setters: &'a LimitSetters,
    /// Some of those that wait for other tasks.
    pub(crate) waiters: &'a [Waiter],
}

impl Waits<'_> {
    /// Returns what an operator has to look at.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.why.obstacles.iter().filter_map(|obstacle| self.finding(obstacle)).collect()
    }

    fn finding(&self, obstacle: &Obstacle) -> Option<Finding> {
        let queue = self.queue;
        match obstacle {
            Obstacle::Limit(limit) => match &limit.shut {
                Some(shut) => self.paused(limit, shut),
                None => self.limited(limit),
            },
            Obstacle::Prerequisites { waiting, unmet } => {
                let requeued = unmet.iter().find(|found| must_be_requeued(found));
                let found = requeued.or_else(|| unmet.iter().find(|found| self.is_gone(found)))?;
                let waiting = text::count(*waiting, "task");
                Some(self.stuck(&format!("{waiting} waiting for other tasks"), found))
            }
            Obstacle::Origin { from, prerequisite, .. } if must_be_requeued(prerequisite) => {
                Some(self.stuck(&format!("tasks wait for {from}"), prerequisite))
            }
            Obstacle::DeadHolder { holder } => {
                let text = format!(
                    "queue {queue}: {obstacle}; {} runs it again, and {} removes it",
                    advice("task retry", [holder]),
                    advice("task delete", [holder])
                );
                Some(Finding::warning("lane", text))
            }
            Obstacle::NewerQueue { .. } => {
                Some(Finding::warning("newer", format!("queue {queue}: {obstacle}")))
            }
            _ => None,
        }
    }

    /// A pause. One that nothing waits for is no warning.
    fn paused(&self, limit: &LimitDetails, shut: &Shut) -> Option<Finding> {
        let LimitDetails { gate, waiting, .. } = limit;
        let is_queue = *gate == Gate::Queue;
        let ends_late = shut.until.is_none_or(|until| text::since(self.now, until) > self.late);
        let (queue, since) = (self.queue, text::instant(shut.since, self.now));
        let what = if is_queue {
            format!("queue {queue} is {shut}, since {since}")
        } else {
            format!("{gate} of queue {queue} is {shut}, since {since}")
        };
        let end = if is_queue {
            format!("{} ends it", advice("queue resume", [queue]))
        } else {
            let names = [queue.to_string(), gate.text()];
            format!("{} ends it", advice("limit resume", names))
        };
        let waiting_text = text::count(*waiting, "task");
        let others = if is_queue { self.others() } else { String::new() };
        let finding = format!("{what}, and keeps {waiting_text} waiting{others}: {end}");
        let is_harmless = *waiting == 0 && others.is_empty();
        match (is_harmless, ends_late) {
            (false, true) => Some(Finding::warning("paused", finding)),
            (true, true) => Some(Finding::note("paused", finding)),
            // It ends by itself soon.
            (_, false) => None,
        }
    }

    /// Says how many tasks of the queue wait for something else while the queue is paused. Without
    /// them, the pause of a queue whose tasks are all blocked would look harmless.
    fn others(&self) -> String {
        match self.blocked {
            0 => String::new(),
            1 => ", while 1 other task of the queue waits for limits, lanes or other tasks".into(),
            count => format!(
                ", while {} other tasks of the queue wait for limits, lanes or other tasks",
                text::number(count)
            ),
        }
    }

    /// A limit that lets no task start for long.
    fn limited(&self, limit: &LimitDetails) -> Option<Finding> {
        let wait = text::since(self.now, limit.next?);
        if limit.waiting == 0 || wait <= self.late {
            return None;
        }
        let (queue, gate, wait) = (self.queue, &limit.gate, text::duration(wait));
        let rate = limit.limit.rate_limit().map_or_else(String::new, |rate| format!(" of {rate}"));
        let set = self.setters.of(queue, gate, &limit.limit).filter(|_| limit.is_set);
        let set = set.map(LimitSetting::of);
        let set = set.map_or_else(String::new, |set| format!(", set by {},", set.at(self.now)));
        let waiting = text::count(limit.waiting, "task");
        let text = format!(
            "queue {queue}: the limit{rate} of {gate}{set} lets no task start for {wait}, and \
             keeps {waiting} waiting; {} shows it, and `optimus limit set` changes it",
            advice("limit list", [queue])
        );
        Some(Finding::warning("limit", text))
    }

    /// Tasks that wait for what somebody has to requeue.
    fn stuck(&self, who: &str, found: &PrerequisiteDetails) -> Finding {
        let (queue, prerequisite) = (self.queue, &found.prerequisite);
        let text = match &found.group {
            Some(group) => format!(
                "queue {queue}: {who}, and the group {prerequisite} waits for members that have \
                 ended without success: {group}; {} names one",
                advice("task explain", [prerequisite])
            ),
            None if found.state == TaskState::Forgotten => format!(
                "queue {queue}: {who}, and nothing is stored of {prerequisite}: its submit did not \
                 end, or it was removed{}",
                self.way_out(prerequisite)
            ),
            None => format!(
                "queue {queue}: {who}, and {prerequisite} is {}: {}{}",
                found.state,
                retry(prerequisite),
                self.way_out(prerequisite)
            ),
        };
        Finding::warning("unmet", text)
    }

    /// Names what to cancel of those that wait for it, and of those that would then wait for a step
    /// that is cancelled.
    fn way_out(&self, prerequisite: &Prerequisite) -> String {
        let (mut ids, mut cancelled) = (Vec::new(), vec![prerequisite.clone()]);
        while !cancelled.is_empty() {
            let waits = |waiter: &&Waiter| {
                !ids.contains(&waiter.step)
                    && waiter.after.iter().any(|one| cancelled.contains(one))
            };
            let next: BTreeMap<&TaskId, bool> = self
                .waiters
                .iter()
                .filter(waits)
                .map(|waiter| (&waiter.step, waiter.is_group))
                .collect();
            let steps = next.iter().filter(|(_, is_group)| !**is_group);
            cancelled = steps.map(|(step, _)| Prerequisite::Task((*step).clone())).collect();
            ids.extend(next.into_keys().cloned());
        }
        if ids.is_empty() {
            return String::new();
        }
        let more = if ids.len() > NAMED_MAX { "some of what waits" } else { "what waits" };
        let cancel = advice("flow cancel", ids.iter().take(NAMED_MAX));
        format!(", {cancel} ends {more} for it")
    }

    /// Returns whether it is a task that was made some time ago, and of which nothing is stored.
    fn is_gone(&self, found: &PrerequisiteDetails) -> bool {
        let Prerequisite::Task(id) = &found.prerequisite else { return false };
        let is_forgotten = found.state == TaskState::Forgotten && !found.is_met;
        is_forgotten && id.created().is_some_and(|at| text::since(at, self.now) > self.late)
    }

    /// Returns how many blocked tasks an obstacle keeps that is a finding of its own, or that wait
    /// for other tasks.
    fn told(&self, obstacle: &Obstacle) -> u64 {
        match obstacle {
            Obstacle::Prerequisites { waiting, .. } => *waiting,
            Obstacle::Limit(limit) if self.finding(obstacle).is_some() => limit.waiting,
            Obstacle::WaitingLane(lane) if lane.shut.is_some() => lane.waiting,
            _ => 0,
        }
    }

    /// Checks how long the first blocked task waits, of the first ones that wait for a lane, a
    /// limit or a run. `since` is when tasks began to wait for one of these.
    pub(crate) fn blocked(
        &self,
        first: &[TaskRow],
        since: Option<DateTime<Utc>>,
    ) -> Option<Finding> {
        let told: u64 = self.why.obstacles.iter().map(|obstacle| self.told(obstacle)).sum();
        let held = self.blocked.saturating_sub(told);
        let first = first.iter().filter_map(|row| waits_since(row, since)).min()?;
        let age = text::since(first, self.now);
        (held > 0 && age > self.late).then(|| {
            let (queue, age, held) =
                (self.queue, text::duration(age), text::count(held, "blocked task"));
            let text = format!(
                "queue {queue}: {held}, and the first one has waited for up to {age}; {} says \
                 what they wait for",
                advice("queue show", [queue])
            );
            Finding::warning("blocked", text)
        })
    }
}

/// Returns when a task began to wait, at the earliest: after its submit, after its last failed
/// attempt, and not before what is stored of others that wait there.
pub(crate) fn waits_since(row: &TaskRow, since: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    let failed = row.last_error.as_ref().map(|error| error.at);
    [row.created, failed, since].into_iter().flatten().max()
}

/// Returns whether it waits until somebody requeues it.
fn must_be_requeued(found: &PrerequisiteDetails) -> bool {
    let is_lost = found.group.as_ref().is_some_and(|group| group.lost > 0);
    is_lost || matches!(found.state, TaskState::Dead | TaskState::Cancelled)
}
