//! Submits the tasks of schedules when they are due: [`Scheduler`].
//!
//! No worker is special. Each one waits until a schedule of its queues is due, and a little longer,
//! by chance. The first one submits the task, and the script refuses the others. A worker that
//! knows of no schedule sends nothing: it hears of one from its heartbeats, or from the wakeup that
//! a change of schedules writes.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Fire, Plan,
    broker::{Agenda, Broker, BrokerError, DueSchedule, Refusal, Step, StepKind, Ticked},
    interval, log_event,
};
use tokio::time::Instant;

use crate::{code_schedules::CodeSchedules, role::Role, served_queue::Served, shared::Shared};

/// The workers of a queue look in this time after a schedule is due, each at a random moment, if
/// they are few.
const SPREAD_MIN: Duration = Duration::from_millis(100);
/// The same for each worker, if they are many: together they look twenty times a second.
const SPREAD_EACH: Duration = Duration::from_millis(50);
/// The workers that have schedules in their code look together once in this time, in addition: an
/// operator may have resumed one.
const AVERAGE: Duration = Duration::from_secs(15);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(60);
/// The wait after a failed call, and after one that Redis or a script has refused.
const AFTER_ERROR: Duration = Duration::from_secs(1);
const AFTER_REFUSAL: Duration = Duration::from_secs(15);
/// The most steps of one schedule in a turn, and the most looks.
const STEPS_MAX: usize = 100;
const LOOKS_MAX: usize = 8;

/// The role that submits the tasks of schedules.
pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    broker: Broker,
    code: CodeSchedules,
    /// By the position of the queue.
    watches: Vec<Watch>,
}

/// What the worker knows of the schedules of a queue.
#[derive(Debug, Clone, Copy)]
struct Watch {
    /// When the next schedule is due.
    due_at: Option<Instant>,
    /// When the worker looks.
    look_at: Option<Instant>,
    /// Whether the schedules of the code were stored since the worker started.
    is_stored: bool,
}

/// What one look has found.
struct Looked {
    /// The time until the next schedule is due.
    next_in: Option<Duration>,
    /// Whether more may be due already.
    more: bool,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        let code = CodeSchedules::new(&shared);
        let watch = |place| Watch {
            due_at: None,
            look_at: (!code.names(place).is_empty()).then(Instant::now),
            is_stored: code.names(place).is_empty(),
        };
        let watches = (0..shared.queues.iter().count()).map(watch).collect();
        Self { shared, broker, code, watches }
    }

    /// Looks at the schedules of a queue until none is due, and returns when the next one is.
    async fn serve(&mut self, place: usize) -> Result<Looked, BrokerError> {
        let shared = self.shared.clone();
        let queue = &shared.queues[place];
        if !self.watches[place].is_stored {
            // A deploy may have changed them.
            let own = self.code.names(place).to_vec();
            self.code.store(&shared, &self.broker, (place, &own)).await?;
            self.watches[place].is_stored = true;
        }
        let mut first = None;
        for _ in 0..LOOKS_MAX {
            let agenda = self.broker.agenda(&queue.name, self.code.names(place)).await?;
            if !agenda.missing.is_empty() {
                self.code.store(&shared, &self.broker, (place, &agenda.missing)).await?;
                continue;
            }
            let looked = self.tick_all(queue, &agenda).await?;
            first = earlier(first, looked.next_in);
            if !looked.more || shared.shutdown.roles().is_cancelled() {
                return Ok(Looked { next_in: first, more: false });
            }
            // Another worker may have been faster, so the next time comes from the next look.
            first = None;
        }
        Ok(Looked { next_in: first, more: true })
    }

    async fn tick_all(&mut self, queue: &Served, agenda: &Agenda) -> Result<Looked, BrokerError> {
        let mut looked = Looked { next_in: agenda.next_in, more: false };
        for schedule in &agenda.due {
            let plan = match (&schedule.timing, schedule.problem()) {
                (Ok(timing), None) => timing.plan(schedule.due_ms, agenda.now_ms),
                (Err(why), _) | (_, Some(why)) => {
                    self.code.log_unreadable(&self.shared, queue, (schedule, why));
                    continue;
                }
            };
            let after = self.take_steps(queue, schedule, &plan, agenda.now_ms).await?;
            looked.next_in = earlier(looked.next_in, after.next_in);
            looked.more |= after.more;
        }
        Ok(looked)
    }

    /// Takes a schedule from instant to instant until the next one is in the future.
    async fn take_steps(
        &self,
        queue: &Served,
        schedule: &DueSchedule,
        plan: &Plan,
        now_ms: u64,
    ) -> Result<Looked, BrokerError> {
        let mut due_ms = schedule.due_ms;
        for (fire, next_ms, kind) in steps_of(plan).take(STEPS_MAX) {
            let step = Step { due_ms, next_ms, fire, kind };
            match self.broker.tick(&queue.name, schedule, step).await {
                Ok(ticked) => self.log(queue, schedule, fire, &ticked),
                Err(problem) if problem.refusal() == Some(Refusal::Early) => {
                    // The clock of Redis was set back.
                    return Ok(Looked { next_in: Some(AFTER_ERROR), more: false });
                }
                Err(problem) if problem.refusal() == Some(Refusal::Stale) => {
                    return Ok(Looked { next_in: None, more: true });
                }
                Err(problem) => return Err(problem),
            }
            let Some(next_ms) = next_ms else { return Ok(Looked { next_in: None, more: false }) };
            due_ms = next_ms;
        }
        let next_in = Duration::from_millis(due_ms.saturating_sub(now_ms));
        Ok(Looked { next_in: Some(next_in), more: due_ms <= now_ms })
    }

    fn log(&self, queue: &Served, schedule: &DueSchedule, fire: Fire, ticked: &Ticked) {
        let (queue, schedule) = (queue.name.clone(), schedule.name.clone());
        let (log, missed) = (&self.shared.log, fire.missed);
        match ticked {
            Ticked::Stored(id) if missed == 0 => {
                let id = id.clone();
                log_event!(log, DEBUG, %queue, schedule, %id, "submitted the task of a schedule");
            }
            Ticked::Stored(id) => {
                let (id, text) =
                    (id.clone(), "submitted one task for several instants of a schedule");
                log_event!(log, INFO, %queue, schedule, %id, missed, "{text}");
            }
            Ticked::Overlap => {
                let text = "left out an instant of a schedule: the task before has not ended";
                log_event!(log, INFO, %queue, schedule, "{text}");
            }
            Ticked::Missed => {
                let text = "no worker was there for instants of a schedule";
                let missed = missed + 1;
                log_event!(log, WARN, %queue, schedule, missed, "{text}");
            }
            Ticked::Duplicate(owner) => {
                let owner = owner.clone();
                let text = "left out an instant of a schedule: another task has the biz id";
                log_event!(log, INFO, %queue, schedule, %owner, "{text}");
            }
        }
    }

    /// Takes in what heartbeats and wakeups have said of a queue.
    fn hear(&mut self, place: usize, queue: &Served) {
        let Some(heard_at) = queue.take_heard_tick() else { return };
        let (watch, now) = (&mut self.watches[place], Instant::now());
        if heard_at <= now {
            watch.look_at = Some(now);
        } else if watch.due_at.is_none_or(|due_at| heard_at < due_at) {
            watch.due_at = Some(heard_at);
            let look_at = heard_at + spread(queue.workers());
            watch.look_at = Some(watch.look_at.map_or(look_at, |at| at.min(look_at)));
        }
    }

    /// Returns when to look next at a queue after a look.
    fn watch_after(&self, place: usize, queue: &Served, looked: &Looked) -> Watch {
        let now = Instant::now();
        let due_at = looked.next_in.map(|wait| now + wait);
        let look_at = match due_at {
            _ if looked.more => Some(now),
            Some(due_at) => Some(due_at + spread(queue.workers())),
            None => None,
        };
        let of_code = (!self.code.names(place).is_empty())
            .then(|| now + interval(AVERAGE, queue.workers(), fastrand::f64()));
        let look_at = look_at.into_iter().chain(of_code).min();
        Watch { due_at, look_at, is_stored: true }
    }

    fn rest(&self) -> Duration {
        let first = self.watches.iter().filter_map(|watch| watch.look_at).min();
        let rest = first.map(|at| at.saturating_duration_since(Instant::now()));
        rest.unwrap_or(REST_MAX).min(REST_MAX)
    }
}

/// Returns the instants of a plan, each with the one after it.
fn steps_of(plan: &Plan) -> impl Iterator<Item = (Fire, Option<u64>, StepKind)> {
    let next =
        |place: usize| plan.fires.get(place + 1).map_or(plan.next_ms, |fire| Some(fire.nominal_ms));
    let fires = plan.fires.iter().enumerate();
    let submitted = fires.map(move |(place, fire)| (*fire, next(place), StepKind::Submit));
    submitted.chain(plan.left_out.map(|fire| (fire, plan.next_ms, StepKind::LeaveOut)))
}

fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Returns a random time after which one of so many workers looks.
fn spread(workers: usize) -> Duration {
    let each = SPREAD_EACH.saturating_mul(u32::try_from(workers).unwrap_or(u32::MAX));
    each.max(SPREAD_MIN).mul_f64(fastrand::f64())
}

impl Role for Scheduler {
    async fn tick(&mut self) -> Duration {
        let shared = self.shared.clone();
        for (place, queue) in shared.queues.iter().enumerate() {
            self.hear(place, queue);
            if self.watches[place].look_at.is_none_or(|at| at > Instant::now()) {
                continue;
            }
            self.watches[place] = match self.serve(place).await {
                Ok(looked) => self.watch_after(place, queue, &looked),
                Err(problem) => {
                    self.code.log_failure(&shared, queue, &problem);
                    let is_brief = problem.is_transient() || matches!(problem, BrokerError::Full);
                    let wait = if is_brief { AFTER_ERROR } else { AFTER_REFUSAL };
                    let again_at = Some(Instant::now() + wait);
                    Watch { due_at: again_at, look_at: again_at, ..self.watches[place] }
                }
            };
        }
        self.rest()
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
