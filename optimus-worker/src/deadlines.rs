//! Enforces the deadline of each attempt, outside the runtime that handlers may block.

use std::{collections::HashMap, sync::Arc, time::Duration};

use optimus_core::{OnLost, QueueName, TIMEOUT_GRACE, WorkerId, log_event};
use tokio::time::Instant;

use crate::{
    attempts::{Attempt, Stop},
    decide_outcome::{self, Decision},
    executor, outcome_log,
    process_stops::THAWED_GRACE,
    role::Role,
    shared::Shared,
};

/// The time between two checks while there are attempts.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(100);
/// A check that is late by this much shows that the whole process was stopped, or had no CPU: the
/// role does nothing between its checks, and handlers can't block its thread.
const FROZEN_FOR: Duration = Duration::from_millis(125);
/// How often all attempts are checked while no deadline has passed and every lease is certain. In
/// this case, only handlers that were asked to stop can be overdue.
const CHECK_ALL_EVERY: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);
/// Tasks often follow each other, so the role sleeps only after this many checks that found no
/// attempt.
const IDLE_CHECKS: u32 = 10;
/// The time after its timeout at which a blocking handler is logged as hanging, and each handler
/// that goes on is shown to operators.
pub(crate) const HUNG_AFTER: Duration = Duration::from_secs(10);
/// How long a handler that was asked to stop may take before it is dropped: since it was asked, or
/// while its lease may be over.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What the log says of a handler that is on a thread at its timeout.
const BLOCKS: &str = "the handler has timed out and blocks a thread of its runtime: make it a \
                      `fn`, or use Context::run_blocking";
/// What the log and the error say of one that is not.
const STARVED: &str = "the handler has timed out and had no thread: other handlers block its \
                       runtime";
const STARVED_NOTE: &str = ": it had no thread at its timeout, because other handlers block its \
                            runtime";

/// The role that checks all attempts.
pub(crate) struct Deadlines {
    shared: Arc<Shared>,
    idle_checks: u32,
    checked_all_at: Instant,
    thaw: Thaw,
    /// The queues in which the lease may be over.
    doubts: HashMap<QueueName, Doubt>,
    /// Whether the log says that leases may be over.
    is_said_doubtful: bool,
}

/// A lease that may be over.
struct Doubt {
    /// This worker's id in the queue.
    worker: WorkerId,
    since: Instant,
}

/// Notices when the process was stopped, by the times of this role's own checks.
struct Thaw {
    /// No attempt is overdue before this time.
    none_before: Instant,
    was_late: bool,
}

impl Thaw {
    /// Records that a check begins that is late by so much.
    fn check(&mut self, now: Instant, late: Duration) {
        let is_late = late > FROZEN_FOR;
        // If every check is late, the machine is overloaded, and blocked handlers must still end.
        if is_late && !self.was_late {
            self.none_before = now + THAWED_GRACE;
        }
        self.was_late = is_late;
    }

    /// Returns whether `grace` has passed since the deadline, and the process has run long enough
    /// to end the attempt itself.
    fn is_over(&self, now: Instant, deadline: std::time::Instant, grace: Duration) -> bool {
        now.into_std() >= deadline + grace && now >= self.none_before
    }
}

impl Deadlines {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        let thaw = Thaw { none_before: now, was_late: false };
        let doubts = HashMap::new();
        Self { shared, idle_checks: 0, checked_all_at: now, thaw, doubts, is_said_doubtful: false }
    }

    /// Checks all attempts, unless no attempt can be overdue. This check is late by so much.
    fn check_all(&mut self, now: Instant, late: Duration) {
        let shared = self.shared.clone();
        let table = &shared.attempts;
        let stopped = shared.stops.check(now).then_some(late);
        self.note_doubts(now);
        self.log_doubt(stopped);
        let is_due =
            table.earliest_deadline().is_some_and(|first| now.into_std() >= first + TIMEOUT_GRACE);
        let is_quiet = !is_due && self.doubts.is_empty() && stopped.is_none();
        if is_quiet && now < self.checked_all_at + CHECK_ALL_EVERY {
            return;
        }
        self.checked_all_at = now;
        let attempts = table.all_for_deadlines();
        let runs = |attempt: &&Arc<Attempt>| !attempt.is_settled() && !attempt.follows();
        let why = if stopped.is_some() { Stop::Frozen } else { Stop::Uncertain };
        for attempt in attempts.iter().filter(runs) {
            self.check(attempt, now, why);
        }
    }

    /// Checks an attempt, which is asked to stop for this reason if its lease may be over.
    fn check(&self, attempt: &Arc<Attempt>, now: Instant, why: Stop) {
        let lease = &attempt.lease;
        let doubt = self.doubts.get(lease.id.queue()).filter(|doubt| doubt.worker == lease.worker);
        if self.shared.stops.cover(attempt.started_at, attempt.limit(), now) {
            attempt.spare(now);
        } else if self.thaw.is_over(now, attempt.limit(), TIMEOUT_GRACE) {
            if attempt.ctx.is_blocking() {
                attempt.stop(Stop::TimedOut);
                self.log_hang(attempt, now);
            } else {
                self.time_out(attempt);
            }
        } else if doubt.is_some() {
            attempt.stop(why);
        }
        let is_overdue = attempt.stopped().is_some_and(|(why, since)| match why {
            Stop::Cancelled | Stop::Lost => now >= since + STOP_GRACE,
            // If Redis answers by then, the lease is known to be held, or to be lost. A task that
            // starts at most once does not run beside another attempt.
            Stop::Uncertain | Stop::Frozen if attempt.facts.on_lost == OnLost::Retry => doubt
                .is_some_and(|doubt| self.thaw.is_over(now, doubt.since.into_std(), STOP_GRACE)),
            _ => false,
        });
        if is_overdue {
            attempt.abandon.notify_one();
        }
    }

    /// Notes in which queues the lease may be over, and since when.
    fn note_doubts(&mut self, now: Instant) {
        let mut before = std::mem::take(&mut self.doubts);
        for queue in self.shared.queues.iter().filter(|queue| !queue.lease_is_certain()) {
            let worker = queue.worker();
            let known = before.remove(&queue.name).filter(|doubt| doubt.worker == worker);
            let doubt = known.unwrap_or(Doubt { worker, since: now });
            self.doubts.insert(queue.name.clone(), doubt);
        }
    }

    /// Logs once why handlers are asked to stop. If the process was stopped for so long, Redis may
    /// have answered all the time.
    fn log_doubt(&mut self, stopped: Option<Duration>) {
        let is_doubtful = !self.doubts.is_empty() && !self.shared.attempts.is_empty();
        let is_new = is_doubtful && !self.is_said_doubtful;
        self.is_said_doubtful = is_doubtful;
        if !is_new {
            return;
        }
        if let Some(stopped) = stopped {
            let stopped_ms = outcome_log::millis(stopped);
            log_event!(
                self.shared.log,
                WARN,
                stopped_ms,
                "this process did not run for so long that leases may be over: it was stopped, or \
                 its machine was suspended or had no CPU for it; handlers are asked to stop, and \
                 attempts that end so count as lost"
            );
        } else {
            log_event!(
                self.shared.log,
                WARN,
                "Redis has not answered for so long that leases may be over: handlers are asked \
                 to stop, and their tasks are given back. An async handler that goes on is dropped \
                 in 10 s, unless Redis answers by then"
            );
        }
    }

    /// Logs once that a thread does not return. The worker can't stop such a thread.
    fn log_hang(&self, attempt: &Attempt, now: Instant) {
        let is_over = self.thaw.is_over(now, attempt.limit(), HUNG_AFTER);
        if !is_over || attempt.hang_was_logged() {
            return;
        }
        let (id, task) = (attempt.lease.id.clone(), attempt.facts.task);
        let (slots, hung) = (self.shared.config.concurrency, self.shared.attempts.hung());
        log_event!(
            self.shared.log,
            ERROR,
            %id,
            task,
            slots,
            hung,
            "a blocking handler has not returned since its timeout; it keeps its slot and its \
             task until it returns or the worker restarts"
        );
    }

    /// Ends an attempt whose deadline has passed. The executor does this itself unless handlers
    /// block its runtime.
    fn time_out(&self, attempt: &Arc<Attempt>) {
        if attempt.begin() {
            // The runtime had no thread for this attempt until now, but another worker may have
            // one.
            if attempt.settle() {
                executor::give_back(&self.shared, attempt.lease.clone());
            }
            return;
        }
        attempt.stop(Stop::TimedOut);
        if !attempt.settle() {
            return;
        }
        // Otherwise it has no thread, and its handler is not polled any more.
        let blocks = attempt.is_on_thread();
        if blocks {
            self.shared.attempts.late.add(attempt);
        }
        let (text, note) = if blocks { (BLOCKS, "") } else { (STARVED, STARVED_NOTE) };
        let decision = decide_outcome::time_out(attempt, note, fastrand::f64());
        executor::report(&self.shared, attempt, decision.map(Decision::from));
        let (id, task) = (attempt.lease.id.clone(), attempt.facts.task);
        log_event!(self.shared.log, WARN, %id, task, "{text}");
    }
}

impl Role for Deadlines {
    async fn tick(&mut self) -> Duration {
        let now = Instant::now();
        let (shared, late) = (self.shared.clone(), self.shared.stops.late(now));
        self.thaw.check(now, late);
        self.check_all(now, late);
        self.idle_checks = if self.shared.attempts.is_empty() { self.idle_checks + 1 } else { 0 };
        let ended = Instant::now();
        if self.idle_checks > IDLE_CHECKS {
            // An attempt that begins once the role sleeps shortens this rest.
            shared.stops.check_next(ended, ended + REST);
            self.doubts.clear();
            if shared.wakeups.deadlines.fall_asleep(|| shared.attempts.is_empty()) {
                return REST;
            }
        }
        shared.stops.check_next(ended, ended + CHECK_EVERY);
        CHECK_EVERY
    }
}

#[cfg(test)]
#[path = "deadlines_tests.rs"]
mod tests;
