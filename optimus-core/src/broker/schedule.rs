//! `schedule`, `reschedule`, `agenda`, `tick`: stores schedules, and submits their tasks.

use std::time::Duration;

use super::{Broker, BrokerError, Reply, ScriptCall, scripts};
use crate::{
    id::{QueueName, TaskId},
    record_json::millis,
    schedule::Overlap,
    scheduled_task::ScheduledTask,
    tick::{Tick, jitter_of, tick_id},
    timing::{Fire, Timing},
};

/// How many schedules one look returns.
pub const AGENDA_MAX: usize = 32;

/// The most steps that are sent together, and the bytes of tasks after which no more are added.
const STEPS_MAX: usize = 64;
const STEP_BYTES_MAX: usize = 1024 * 1024;

/// The score of a schedule that is never due.
const NEVER: &str = "inf";

/// Which schedules a look is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// The names of the caller's own code.
    pub of_code: &'a [String],
    /// The names of schedules that the caller can't read, and leaves out.
    pub unread: &'a [String],
    /// A random number. If more are due than one look returns, it decides which.
    pub random: u32,
}

/// What is due in a queue.
pub struct Agenda {
    /// Redis' clock, in ms.
    pub now_ms: u64,
    /// The time until another schedule is due.
    pub next_in: Option<Duration>,
    /// The names of the caller's own code that are not stored.
    pub missing: Vec<String>,
    /// The schedules that are due.
    pub due: Vec<DueSchedule>,
}

/// A schedule that is due.
#[derive(Clone)]
pub struct DueSchedule {
    /// The name of the schedule.
    pub name: String,
    /// Since when it is due, in ms.
    pub due_ms: u64,
    pub(crate) edition: u64,
    /// Whether it moves from queue to queue, so that it has no instants yet.
    pub is_moving: bool,
    /// When it is due, or why this program can't read that.
    pub timing: Result<Timing, String>,
    /// The task, or why this program can't read it.
    pub(crate) task: Result<ScheduledTask, String>,
}

impl DueSchedule {
    /// Returns when it is due.
    ///
    /// # Errors
    /// Says why this program can't read it.
    pub fn readable(&self) -> Result<&Timing, &String> {
        self.task.as_ref().and(self.timing.as_ref())
    }
}

/// One step of a schedule to its next instant.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// When the schedule is due as far as the caller knows, in ms.
    pub due_ms: u64,
    /// When it is due next.
    pub next_ms: Option<u64>,
    /// The instant.
    pub fire: Fire,
    /// Whether the instant gets a task.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Submits the task of the instant.
    Submit,
    /// Only notes that instants were missed.
    LeaveOut,
}

/// What became of an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticked {
    /// The task is stored.
    Stored(TaskId),
    /// The task before it has not ended.
    Overlap,
    /// It was noted as missed.
    Missed,
    /// This task has the biz id.
    Duplicate(TaskId),
}

/// What a schedule is stored with.
#[derive(Clone, Copy)]
pub struct NewSchedule<'a> {
    /// The name of the schedule.
    pub name: &'a str,
    /// The edition that the caller has read; 0 if there is none.
    pub edition: u64,
    /// The release of the program whose code has it; empty if it was made at run time.
    pub release: &'a str,
    /// When it is due; `None` if never.
    pub due_ms: Option<u64>,
    /// When it is due, in stored form.
    pub timing: &'a str,
    /// The record of its tasks.
    pub record: &'a [u8],
    /// The payload, if it is apart from the record; else empty.
    pub blob: &'a [u8],
    /// Of several queues that have a schedule of this name, the highest number keeps it.
    pub number: u64,
    /// When the program of the release has started, in ms; 0 if it was made at run time.
    pub started_ms: u64,
}

/// What a schedule takes along to another queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// Since when and by whom it is paused, as stored; empty if it is not.
    pub paused: String,
    /// When it is due; `None` if never.
    pub due_ms: Option<u64>,
    /// Its latest instant.
    pub last_ms: Option<u64>,
    /// When it was made first.
    pub made_ms: u64,
    /// The entries of its history, as stored, the latest first.
    pub history: Vec<String>,
}

/// What `reschedule` does to a schedule.
#[derive(Debug, Clone, Copy)]
pub enum Reschedule<'a> {
    /// Pauses it. The text says who does.
    Pause(&'a str),
    /// Ends a pause. It is due then, or never.
    Resume(Option<u64>),
    /// Removes it.
    Remove,
    /// Marks it as moving: it has no instants until it is settled.
    Move,
    /// Gives it what it had in another queue.
    Take(&'a Taken),
    /// Ends a move.
    Settle,
}

impl Broker {
    /// Stores a schedule, unless it has changed since the caller has read it.
    pub async fn schedule(
        &self,
        queue: &QueueName,
        new: NewSchedule<'_>,
    ) -> Result<(), BrokerError> {
        let mut call = self
            .call(&scripts::SCHEDULE, queue, new.name)
            .arg(new.name)
            .arg(new.edition)
            .arg(new.release)
            .arg(due_word(new.due_ms))
            .arg(new.timing);
        call.push_bytes(new.record);
        call.push_bytes(new.blob);
        self.run(call.arg(new.number).arg(new.started_ms)).await.map(drop)
    }

    /// Pauses, resumes, moves or removes a schedule, unless it has changed since the caller read
    /// it.
    pub async fn reschedule(
        &self,
        queue: &QueueName,
        (name, edition): (&str, u64),
        act: Reschedule<'_>,
    ) -> Result<(), BrokerError> {
        let (by_act, by) = match act {
            Reschedule::Pause(by) => ("pause".to_owned(), by),
            Reschedule::Resume(due_ms) => (due_word(due_ms), ""),
            Reschedule::Remove => ("remove".to_owned(), ""),
            Reschedule::Move => ("move".to_owned(), ""),
            Reschedule::Take(taken) => ("take".to_owned(), &*taken.paused),
            Reschedule::Settle => ("settle".to_owned(), ""),
        };
        let call = self.call(&scripts::RESCHEDULE, queue, name).arg(name).arg(edition);
        let mut call = call.arg(by_act).arg(by);
        if let Reschedule::Take(taken) = act {
            call.push(due_word(taken.due_ms));
            call.push(taken.last_ms.map_or_else(String::new, |ms| ms.to_string()));
            call.push(taken.made_ms);
            for entry in &taken.history {
                call.push(entry);
            }
        }
        self.run(call).await.map(drop)
    }

    /// Reads what is due in a queue: of the schedules that were made at run time, and of those of
    /// the caller's code.
    pub async fn agenda(&self, queue: &QueueName, look: Look<'_>) -> Result<Agenda, BrokerError> {
        let call = self.call(&scripts::AGENDA, queue, "").arg(AGENDA_MAX).arg(look.random);
        let mut call = call.arg(look.unread.len());
        for name in look.unread.iter().chain(look.of_code) {
            call.push(name);
        }
        Self::read_agenda(self.run_read(call).await?)
    }

    /// Reads the answer to [`agenda`](Self::agenda).
    pub fn read_agenda(mut reply: Reply) -> Result<Agenda, BrokerError> {
        let (now_ms, next_in, missing) = (reply.number()?, reply.wait()?, reply.texts()?);
        let due = reply.list()?.chunks_exact(7).map(due_schedule).collect::<Result<_, _>>()?;
        Ok(Agenda { now_ms, next_in, missing, due })
    }

    /// Takes a schedule one step further: submits the task of an instant, if nobody has.
    pub async fn tick(
        &self,
        queue: &QueueName,
        schedule: &DueSchedule,
        step: Step,
    ) -> Result<Ticked, BrokerError> {
        self.tick_all(queue, &[(schedule, step)]).await.pop().expect("an answer for each step")
    }

    /// Takes these steps in their order, many in one exchange. A step whose schedule is not where
    /// the step begins is refused; so are all steps of a schedule after one that was refused.
    pub async fn tick_all(
        &self,
        queue: &QueueName,
        steps: &[(&DueSchedule, Step)],
    ) -> Vec<Result<Ticked, BrokerError>> {
        let mut answers = Vec::with_capacity(steps.len());
        let (mut calls, mut ids, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (place, (schedule, step)) in steps.iter().enumerate() {
            match self.step_call(queue, schedule, *step) {
                Ok((call, id)) => {
                    calls.push(call);
                    ids.push(id);
                }
                Err(problem) => {
                    answers.push(Err(problem));
                    return answers;
                }
            }
            bytes += schedule.task.as_ref().map_or(0, |task| task.record.len() + task.blob.len());
            let is_full = calls.len() == STEPS_MAX || bytes >= STEP_BYTES_MAX;
            if is_full || place + 1 == steps.len() {
                let replies = self.run_all(std::mem::take(&mut calls)).await;
                for (reply, id) in replies.into_iter().zip(ids.drain(..)) {
                    answers.push(reply.and_then(|reply| ticked(queue, reply, id)));
                }
                bytes = 0;
            }
        }
        answers
    }

    fn step_call(
        &self,
        queue: &QueueName,
        schedule: &DueSchedule,
        step: Step,
    ) -> Result<(ScriptCall, Option<TaskId>), BrokerError> {
        let id = match step.kind {
            StepKind::Submit => {
                Some(tick_id(&self.namespace, queue, &schedule.name, step.fire.nominal_ms))
            }
            StepKind::LeaveOut => None,
        };
        let expected = step.due_ms.to_string();
        let turn = (&*expected, &*due_word(step.next_ms), step.fire);
        Ok((self.tick_call(queue, schedule, turn, id.as_ref())?, id))
    }

    /// Submits a task of a schedule now, out of turn, under this id.
    pub async fn tick_now(
        &self,
        schedule: &DueSchedule,
        now_ms: u64,
        id: TaskId,
    ) -> Result<Ticked, BrokerError> {
        let fire = Fire { nominal_ms: now_ms, missed: 0 };
        let queue = id.queue().clone();
        let call = self.tick_call(&queue, schedule, ("", "", fire), Some(&id))?;
        ticked(&queue, self.run(call).await?, Some(id))
    }

    fn tick_call(
        &self,
        queue: &QueueName,
        schedule: &DueSchedule,
        (expected, following, fire): (&str, &str, Fire),
        id: Option<&TaskId>,
    ) -> Result<ScriptCall, BrokerError> {
        let unknown = |why: &String| BrokerError::Rejected(why.clone());
        let task = schedule.task.as_ref().map_err(unknown)?;
        let timing = schedule.timing.as_ref().map_err(unknown)?;
        let (name, facts) = (&*schedule.name, &task.facts);
        let offset_secs = timing.offset_secs(fire.nominal_ms);
        let record = task.record_at(&Tick::new(name, fire.nominal_ms, offset_secs, fire.missed));
        let is_in_turn = !expected.is_empty();
        let most_ms = if is_in_turn { timing.jitter_ms } else { 0 };
        let mut call = self
            .call(&scripts::TICK, queue, name)
            .arg(name)
            .arg(schedule.edition)
            .arg(expected)
            .arg(following)
            .arg(fire.nominal_ms)
            .arg(fire.missed)
            .arg(id.map_or_else(String::new, TaskId::stored));
        call.push_bytes(&record);
        call.push_bytes(&task.blob);
        let flag = |is_so| if is_so { "1" } else { "" };
        call.push(jitter_of(name, fire.nominal_ms, most_ms));
        call.push(flag(timing.overlap == Overlap::Skip));
        call.push(task.version);
        call.push(facts.lane.as_ref().map_or(0, |lane| lane.width.get()));
        call.push(flag(!facts.limits.is_empty()));
        call.push(flag(facts.expires_in.is_some()));
        call.push(if facts.priority == 0 { String::new() } else { facts.priority.to_string() });
        match &facts.biz_id {
            Some(biz_id) => {
                call.push(facts.biz_window.map_or(0, millis));
                call.extra_key(&self.keys(queue).biz(&facts.task, biz_id));
            }
            None => call.push(""),
        }
        Ok(call)
    }
}

fn ticked(queue: &QueueName, mut reply: Reply, id: Option<TaskId>) -> Result<Ticked, BrokerError> {
    let what = reply.text()?;
    Ok(match (&*what, id) {
        ("overlap", _) => Ticked::Overlap,
        ("missed", _) => Ticked::Missed,
        ("stored", Some(id)) => Ticked::Stored(id),
        (owner, _) => Ticked::Duplicate(
            TaskId::from_stored(queue.clone(), owner).map_err(|_| unexpected("tick", owner))?,
        ),
    })
}

fn due_schedule(row: &[Vec<u8>]) -> Result<DueSchedule, BrokerError> {
    let text = |at: usize| String::from_utf8_lossy(&row[at]).into_owned();
    let number = |at: usize| text(at).parse().map_err(|_| unexpected("agenda", &text(at)));
    Ok(DueSchedule {
        name: text(0),
        due_ms: number(1)?,
        edition: number(2)?,
        timing: Timing::read(&text(3)),
        task: ScheduledTask::read(row[4].clone(), row[5].clone()).map_err(|why| why.to_string()),
        is_moving: !row[6].is_empty(),
    })
}

fn due_word(due_ms: Option<u64>) -> String {
    due_ms.map_or_else(|| NEVER.to_owned(), |ms| ms.to_string())
}

fn unexpected(script: &str, word: &str) -> BrokerError {
    BrokerError::UnexpectedReply(format!("{script} answered {word:?}"))
}
