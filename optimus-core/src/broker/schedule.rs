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

/// The score of a schedule that is never due.
const NEVER: &str = "inf";

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
    /// When it is due, or why this program can't read that.
    pub timing: Result<Timing, String>,
    /// The task, or why this program can't read it.
    pub(crate) task: Result<ScheduledTask, String>,
}

impl DueSchedule {
    /// Returns why this program can't read the task.
    pub fn problem(&self) -> Option<&String> {
        self.task.as_ref().err()
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
        self.run(call).await.map(drop)
    }

    /// Pauses, resumes or removes a schedule, unless it has changed since the caller has read it.
    pub async fn reschedule(
        &self,
        queue: &QueueName,
        (name, edition): (&str, u64),
        act: Reschedule<'_>,
    ) -> Result<(), BrokerError> {
        let (act, by) = match act {
            Reschedule::Pause(by) => ("pause".to_owned(), by),
            Reschedule::Resume(due_ms) => (due_word(due_ms), ""),
            Reschedule::Remove => ("remove".to_owned(), ""),
        };
        let call = self.call(&scripts::RESCHEDULE, queue, name).arg(name).arg(edition);
        self.run(call.arg(act).arg(by)).await.map(drop)
    }

    /// Reads what is due in a queue: of the schedules that were made at run time, and of these
    /// schedules of code.
    pub async fn agenda(
        &self,
        queue: &QueueName,
        of_code: &[String],
    ) -> Result<Agenda, BrokerError> {
        let mut call = self.call(&scripts::AGENDA, queue, "").arg(AGENDA_MAX);
        for name in of_code {
            call.push(name);
        }
        Self::read_agenda(self.run_read(call).await?)
    }

    /// Reads the answer to [`agenda`](Self::agenda).
    pub fn read_agenda(mut reply: Reply) -> Result<Agenda, BrokerError> {
        let (now_ms, next_in, missing) = (reply.number()?, reply.wait()?, reply.texts()?);
        let due = reply.list()?.chunks_exact(6).map(due_schedule).collect::<Result<_, _>>()?;
        Ok(Agenda { now_ms, next_in, missing, due })
    }

    /// Takes a schedule one step further: submits the task of an instant, if nobody has.
    pub async fn tick(
        &self,
        queue: &QueueName,
        schedule: &DueSchedule,
        step: Step,
    ) -> Result<Ticked, BrokerError> {
        let id = match step.kind {
            StepKind::Submit => {
                Some(tick_id(&self.namespace, queue, &schedule.name, step.fire.nominal_ms))
            }
            StepKind::LeaveOut => None,
        };
        let expected = step.due_ms.to_string();
        let turn = (&*expected, &*due_word(step.next_ms), step.fire);
        self.run_tick(queue, schedule, turn, id).await
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
        self.run_tick(&queue, schedule, ("", "", fire), Some(id)).await
    }

    async fn run_tick(
        &self,
        queue: &QueueName,
        schedule: &DueSchedule,
        (expected, following, fire): (&str, &str, Fire),
        id: Option<TaskId>,
    ) -> Result<Ticked, BrokerError> {
        let call = self.tick_call(queue, schedule, (expected, following, fire), id.as_ref())?;
        let what = self.run(call).await?.text()?;
        Ok(match (&*what, id) {
            ("overlap", _) => Ticked::Overlap,
            ("missed", _) => Ticked::Missed,
            ("stored", Some(id)) => Ticked::Stored(id),
            (owner, _) => Ticked::Duplicate(
                TaskId::from_stored(queue.clone(), owner).map_err(|_| unexpected("tick", owner))?,
            ),
        })
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

fn due_schedule(row: &[Vec<u8>]) -> Result<DueSchedule, BrokerError> {
    let text = |at: usize| String::from_utf8_lossy(&row[at]).into_owned();
    let number = |at: usize| text(at).parse().map_err(|_| unexpected("agenda", &text(at)));
    Ok(DueSchedule {
        name: text(0),
        due_ms: number(1)?,
        edition: number(2)?,
        timing: Timing::read(&text(3)),
        task: ScheduledTask::read(row[4].clone(), row[5].clone()).map_err(|why| why.to_string()),
    })
}

fn due_word(due_ms: Option<u64>) -> String {
    due_ms.map_or_else(|| NEVER.to_owned(), |ms| ms.to_string())
}

fn unexpected(script: &str, word: &str) -> BrokerError {
    BrokerError::UnexpectedReply(format!("{script} answered {word:?}"))
}
