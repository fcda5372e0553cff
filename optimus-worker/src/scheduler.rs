//! Submits the tasks of schedules when they are due: [`Scheduler`].
//!
//! No worker is special. Each one waits until a schedule of its queues is due, and a little longer,
//! by chance. The first one submits the task, and the script refuses the others. A worker that
//! knows of no schedule sends nothing: it hears of one from its heartbeats, or from the wakeup that
//! a change of schedules writes.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Fire, Plan, WorkerId,
    broker::{Agenda, Broker, BrokerError, DueSchedule, Look, Refusal, Step, StepKind, Ticked},
    interval, log_event, settle_schedule,
};
use tokio::time::Instant;

use crate::{
    code_schedules::{ASK_AGAIN_AFTER, CodeSchedules, IsStart},
    role::Role,
    served_queue::Served,
    shared::Shared,
};

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
#[derive(Debug, Clone)]
struct Watch {
    /// When the next schedule is due.
    due_at: Option<Instant>,
    /// When the worker looks.
    look_at: Option<Instant>,
    /// Under which id the worker has stored the schedules of the code last. With a new id, Redis
    /// may have lost them, and another release may have stored its own first.
    stored_by: Option<WorkerId>,
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
            stored_by: None,
        };
        let watches = (0..shared.queues.iter().count()).map(watch).collect();
        Self { shared, broker, code, watches }
    }

    /// Looks at the schedules of a queue until none is due, and returns when the next one is.
    async fn serve(&mut self, place: usize) -> Result<Looked, BrokerError> {
        let shared = self.shared.clone();
        let queue = &shared.queues[place];
        let (worker, own) = (queue.worker(), self.code.names(place).to_vec());
        let stored_by = &self.watches[place].stored_by;
        if !own.is_empty() && stored_by.as_ref() != Some(&worker) {
            // A deploy may have changed them.
            let is_start = if stored_by.is_none() { IsStart::Yes } else { IsStart::No };
            self.code.store(&shared, &self.broker, (place, &own, is_start)).await?;
            self.watches[place].stored_by = Some(worker);
        }
        for _ in 0..LOOKS_MAX {
            let (of_code, unread) = self.code.look(place);
            let random = fastrand::u32(..);
            let look = Look { of_code: &of_code, unread: &unread, random };
            let mut agenda = self.broker.agenda(&queue.name, look).await?;
            let missing = self.code.wanted(std::mem::take(&mut agenda.missing));
            if !missing.is_empty() {
                self.code.store(&shared, &self.broker, (place, &missing, IsStart::No)).await?;
                continue;
            }
            let looked = self.tick_all((place, queue), &agenda).await?;
            if !looked.more || shared.shutdown.roles().is_cancelled() {
                return Ok(Looked { more: false, ..looked });
            }
            // Another worker may have been faster, so the next time comes from the next look.
        }
        Ok(Looked { next_in: None, more: true })
    }

    /// Takes all that is due from instant to instant until the next ones are in the future.
    async fn tick_all(
        &mut self,
        (place, queue): (usize, &Served),
        agenda: &Agenda,
    ) -> Result<Looked, BrokerError> {
        // Some may be due that are not in the agenda.
        let more = agenda.next_in == Some(Duration::ZERO);
        let mut looked = Looked { next_in: agenda.next_in, more };
        let (mut steps, mut is_stuck) = (Vec::new(), true);
        for schedule in &agenda.due {
            match schedule.readable() {
                Ok(_) if schedule.is_moving => {
                    settle_schedule(&self.broker, &schedule.name, &queue.name).await?;
                    (looked.more, is_stuck) = (true, false);
                }
                Ok(timing) => {
                    let plan = timing.plan(schedule.due_ms, agenda.now_ms);
                    steps.extend(steps_of(schedule, &plan));
                    is_stuck = false;
                }
                Err(why) => {
                    let unread = (schedule, why);
                    let is_new = self.code.leave_out(&self.shared, (place, queue), unread);
                    looked.next_in = earlier(looked.next_in, Some(ASK_AGAIN_AFTER));
                    is_stuck &= !is_new;
                    looked.more |= is_new;
                }
            }
        }
        if is_stuck && !agenda.due.is_empty() {
            // More can't be read than this worker remembers.
            return Ok(Looked { next_in: Some(AFTER_ERROR), more: false });
        }
        let answers = self.broker.tick_all(&queue.name, &steps).await;
        self.read_answers(queue, &steps, answers, agenda.now_ms).map(|after| Looked {
            next_in: earlier(looked.next_in, after.next_in),
            more: looked.more || after.more,
        })
    }

    fn read_answers(
        &self,
        queue: &Served,
        steps: &[(&DueSchedule, Step)],
        answers: Vec<Result<Ticked, BrokerError>>,
        now_ms: u64,
    ) -> Result<Looked, BrokerError> {
        let mut looked = Looked { next_in: None, more: false };
        let mut refused = "";
        for (place, ((schedule, step), answer)) in steps.iter().zip(answers).enumerate() {
            if schedule.name == refused {
                continue;
            }
            let wait = match answer {
                Ok(ticked) => {
                    self.log(queue, schedule, step.fire, &ticked);
                    let next = steps.get(place + 1);
                    let is_last = next.is_none_or(|(next, _)| next.name != schedule.name);
                    let wait_ms = step.next_ms.map(|next_ms| next_ms.saturating_sub(now_ms));
                    wait_ms.filter(|_| is_last).map(Duration::from_millis)
                }
                Err(problem) if problem.refusal() == Some(Refusal::Early) => {
                    // The clock of Redis was set back.
                    refused = &schedule.name;
                    Some(AFTER_ERROR)
                }
                Err(problem) if problem.refusal() == Some(Refusal::Stale) => {
                    refused = &schedule.name;
                    Some(Duration::ZERO)
                }
                Err(problem) => return Err(problem),
            };
            looked.next_in = earlier(looked.next_in, wait);
            looked.more |= wait == Some(Duration::ZERO);
        }
        Ok(looked)
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
        Watch { due_at, look_at, stored_by: self.watches[place].stored_by.clone() }
    }

    fn rest(&self) -> Duration {
        let first = self.watches.iter().filter_map(|watch| watch.look_at).min();
        let rest = first.map(|at| at.saturating_duration_since(Instant::now()));
        rest.unwrap_or(REST_MAX).min(REST_MAX)
    }
}

/// Returns the steps of a schedule through the instants of a plan, each to the next.
fn steps_of<'a>(schedule: &'a DueSchedule, plan: &Plan) -> Vec<(&'a DueSchedule, Step)> {
    let submitted = plan.fires.iter().map(|fire| (*fire, StepKind::Submit));
    let fires: Vec<_> =
        submitted.chain(plan.left_out.map(|fire| (fire, StepKind::LeaveOut))).collect();
    let mut due_ms = schedule.due_ms;
    let step_at = |(place, (fire, kind)): (usize, &(Fire, StepKind))| {
        let next_ms = fires.get(place + 1).map_or(plan.next_ms, |(next, _)| Some(next.nominal_ms));
        let step = Step { due_ms, next_ms, fire: *fire, kind: *kind };
        due_ms = next_ms.unwrap_or(due_ms);
        (schedule, step)
    };
    fires.iter().enumerate().take(STEPS_MAX).map(step_at).collect()
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
                    let stored_by = self.watches[place].stored_by.take();
                    Watch { due_at: again_at, look_at: again_at, stored_by }
                }
            };
        }
        self.rest()
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
