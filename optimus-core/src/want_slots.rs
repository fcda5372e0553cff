//! How many slots a queue needs: [`WantSlots`].
//!
//! Little's law says that tasks which arrive at a rate and run for a mean time keep *rate × time*
//! slots busy, however many slots there are. A backlog needs *tasks × time / target* more to end
//! within the target. Unlike the length of the queue alone, this does not depend on how many slots
//! there are now, and it is above 0 if one task waits and no worker runs. It is not more than the
//! limit of the whole queue lets run.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::overview::QueueOverview;

/// The time over which arrivals are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// The mean time of a run, if no attempt has ended in this hour and the one before.
const RUN_UNKNOWN: Duration = Duration::from_secs(1);
/// Rounding must not ask for a slot more.
const TOLERANCE: f64 = 1e-6;

/// The recent past of a queue.
#[derive(Debug, Default)]
pub(crate) struct WantSlots(VecDeque<Point>);

#[derive(Debug, Clone, Copy)]
struct Point {
    at: Instant,
    /// Tasks that are ready, due or running.
    open: u64,
    /// Attempts that have ended so far by themselves.
    ended: u64,
}

impl WantSlots {
    /// Notes a read, and returns how many slots the queue needs.
    pub(crate) fn note(&mut self, at: Instant, seen: &QueueOverview, target: Duration) -> u64 {
        let (counts, totals) = (&seen.counts, &seen.totals);
        // Cancels are left out: most of them end tasks that were neither ready nor running.
        let ended = totals.successes + totals.retries + totals.deaths;
        let ready = counts.ready + seen.due;
        let point = Point { at, open: ready + counts.working, ended };
        let arrivals = self.rate(point);
        let run = seen.recent.run.mean().unwrap_or(RUN_UNKNOWN);
        // A schedule that is due needs a worker that submits its task. A paused queue needs slots
        // only for what still runs.
        let late_schedule = u64::from(seen.schedule_lag.is_some());
        let ready = if counts.paused { 0 } else { ready + late_schedule };
        let arrivals = arrivals.filter(|_| !counts.paused);
        let wanted = want((arrivals, run), (ready, counts.working), target);
        wanted.min(most(seen, run).max(counts.working))
    }

    /// Returns how many attempts became possible in a second: what was added to the tasks that are
    /// ready, due or running, and what has left them. `None` if there is only one point.
    fn rate(&mut self, now: Point) -> Option<f64> {
        if self.0.back().is_some_and(|last| last.ended > now.ended) {
            // The queue was removed, or Redis has lost writes.
            self.0.clear();
        }
        while self.0.len() > 1 && now.at.duration_since(self.0[1].at) >= WINDOW {
            self.0.pop_front();
        }
        let first = self.0.front().copied();
        self.0.push_back(now);
        let first = first?;
        let seconds = now.at.duration_since(first.at).as_secs_f64();
        let arrived = (now.open + now.ended).saturating_sub(first.open + first.ended);
        (seconds > 0.0).then(|| float(arrived) / seconds)
    }
}

/// `run` is the mean time of an attempt. What runs now keeps its slots, so that a scaler does not
/// end workers with long tasks.
fn want(
    (arrivals, run): (Option<f64>, Duration),
    (ready, working): (u64, u64),
    target: Duration,
) -> u64 {
    let run = run.as_secs_f64();
    let steady = arrivals.map_or(0.0, |rate| rate * run).max(float(working));
    // More slots than tasks do not help.
    let backlog = (float(ready) * run / target.as_secs_f64()).min(float(ready));
    let slots = whole((steady + backlog - TOLERANCE).ceil());
    // Runs of microseconds need almost nothing, but somebody must run them.
    if ready > 0 { slots.max(1) } else { slots }
}

/// Returns how many tasks the limit of the whole queue lets run at once: with a rate, those that
/// may start within the time of a run, of which more than one may start now.
fn most(seen: &QueueOverview, run: Duration) -> u64 {
    let Some(limit) = seen.limit else { return u64::MAX };
    let by_working = limit.max_working_limit().map_or(u64::MAX, u64::from);
    let by_rate = limit.rate_limit().map_or(u64::MAX, |rate| {
        let in_a_run = run.as_secs_f64() / rate.interval().as_secs_f64();
        let steady = whole((in_a_run - TOLERANCE).ceil()).max(1);
        steady.saturating_add(seen.tokens.unwrap_or(0).saturating_sub(1))
    });
    by_working.min(by_rate)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not below 0, and a number that is too large becomes the largest"
)]
fn whole(slots: f64) -> u64 {
    slots.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        broker::{Counts, Totals},
        id::QueueName,
        stats::TaskStats,
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn of(arrivals: f64, run_ms: u64, tasks: (u64, u64)) -> u64 {
        want((Some(arrivals), Duration::from_millis(run_ms)), tasks, MINUTE)
    }

    #[test]
    fn a_task_that_waits_needs_a_slot_however_short_its_runs_are() {
        assert_eq!(want((None, Duration::from_micros(10)), (2, 0), MINUTE), 1);
        assert_eq!(want((Some(0.0), Duration::ZERO), (1, 0), MINUTE), 1);
        assert_eq!(want((Some(0.0), Duration::ZERO), (0, 0), MINUTE), 0);
    }

    #[test]
    fn a_queue_needs_what_arrives_and_a_part_of_its_backlog() {
        assert_eq!(of(0.0, 100, (0, 0)), 0);
        assert_eq!(of(0.0, 100, (1, 0)), 1, "one task is enough to begin from zero");
        assert_eq!(of(100.0, 100, (0, 0)), 10);
        assert_eq!(of(100.0, 100, (6_000, 0)), 20);
        assert_eq!(of(0.0, 3_600_000, (5, 0)), 5, "more slots than tasks do not help");
        assert_eq!(of(0.0, 100, (0, 8)), 8, "what runs keeps its slots");
        assert_eq!(of(100.0, 100, (0, 8)), 10);
        assert_eq!(want((None, RUN_UNKNOWN), (120, 3), MINUTE), 5);
    }

    #[test]
    fn cancels_of_tasks_that_were_not_ready_are_no_arrivals() {
        let (begin, mut past) = (Instant::now(), WantSlots::default());
        let mut note = |seconds, cancels| {
            let seen = QueueOverview {
                queue: QueueName::new("mail").unwrap(),
                counts: Counts::default(),
                totals: Totals { cancels, ..Totals::default() },
                due: 0,
                limit: None,
                tokens: None,
                oldest: None,
                oldest_since: None,
                schedule_lag: None,
                recent: TaskStats::default(),
                problem: None,
            };
            past.note(begin + Duration::from_secs(seconds), &seen, MINUTE)
        };
        assert_eq!([note(0, 0), note(10, 5_000)], [0, 0]);
    }

    #[test]
    fn arrivals_are_counted_over_a_minute_and_again_after_a_loss() {
        let (begin, mut past) = (Instant::now(), WantSlots::default());
        let mut at = |seconds: u64, open: u64, ended: u64| {
            past.rate(Point { at: begin + Duration::from_secs(seconds), open, ended })
        };
        assert_eq!(at(0, 10, 0), None);
        assert_eq!(at(10, 10, 100), Some(10.0));
        assert_eq!(at(20, 110, 200), Some(15.0));
        assert_eq!(at(60, 0, 310), Some(5.0));
        assert_eq!(at(70, 0, 310), Some(200.0 / 60.0), "the first point is too old");
        assert_eq!(at(80, 0, 310), Some(0.0));
        assert_eq!(at(90, 0, 5), None, "the totals have begun again");
        assert_eq!(at(100, 0, 15), Some(1.0));
    }
}
