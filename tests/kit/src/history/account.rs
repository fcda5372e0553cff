//! Everything that happened to one task: [`Account`].

use super::requests::{Effect, Requests};
use super::{Event, Found, How, IfDead, Until, What};

/// What clients and handlers recorded about one task.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) invoked: Option<Invoked>,
    pub(super) answer: Option<(u64, Answer)>,
    pub(super) cancels: Requests,
    pub(super) requeues: Requests,
    pub(super) deletes: Requests,
    /// Whether the task waits for others, so that it may be cancelled or dead without an attempt.
    pub(super) waits: bool,
    pub(super) lane: Option<InLane>,
    /// The limits of the task, and how much of each it uses.
    pub(super) limits: Vec<(String, u64)>,
    /// The tasks that it waits for.
    pub(super) after: Vec<(u64, Until)>,
    /// The executions, ordered by fence once they are [sorted](Self::sort).
    pub(super) executions: Vec<Execution>,
    pub(super) found: Option<(Found, u64)>,
    /// Events that are impossible, such as the end of an execution that never began.
    pub(super) oddities: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Invoked {
    pub(super) at: u64,
    pub(super) biz: Option<u64>,
    pub(super) delay_ms: u64,
}

/// The lane of a task.
#[derive(Debug)]
pub(super) struct InLane {
    pub(super) name: String,
    pub(super) width: u16,
    pub(super) if_dead: IfDead,
}

/// The answer that the client of the task received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Acked { id: String },
    Duplicate { owner: String },
    Refused,
    Unknown,
}

/// One execution of the task's handler.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) pid: u32,
    pub(super) id: String,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    pub(super) begun: u64,
    pub(super) end: Option<(u64, How)>,
}

impl Execution {
    pub(super) fn ended_as(&self, how: How) -> bool {
        self.end.is_some_and(|(_, end)| end == how)
    }
}

impl Account {
    /// Adds an event that is about this task.
    pub(super) fn add(&mut self, event: Event) {
        let Event { at, pid, what } = event;
        match what {
            What::Invoke { biz, delay_ms, .. } => self.invoke(Invoked { at, biz, delay_ms }),
            What::Acked { id, .. } => self.answer(at, Answer::Acked { id }),
            What::Duplicate { owner, .. } => self.answer(at, Answer::Duplicate { owner }),
            What::Refused { .. } => self.answer(at, Answer::Refused),
            What::Unknown { .. } => self.answer(at, Answer::Unknown),
            What::Cancel { .. } => self.cancels.ask(pid, at),
            What::Waits { .. } => self.waits = true,
            What::Lane { width, if_dead, lane, .. } => {
                self.lane = Some(InLane { name: lane, width, if_dead });
            }
            What::Limited { cost, limit, .. } => self.limits.push((limit, cost)),
            What::After { other, until, .. } => {
                self.waits = true;
                self.after.push((other, until));
            }
            What::Cancelled { .. } => self.cancels.answer(pid, at, Effect::Done),
            What::Stopping { .. } => self.cancels.answer(pid, at, Effect::Begun),
            What::Requeue { .. } => self.requeues.ask(pid, at),
            What::Requeued { .. } => self.requeues.answer(pid, at, Effect::Done),
            What::Delete { .. } => self.deletes.ask(pid, at),
            What::Deleted { .. } => self.deletes.answer(pid, at, Effect::Done),
            What::Undone { .. } => self.undone(pid, at),
            What::Begin { id, attempt, fence, .. } => {
                self.executions.push(Execution { pid, id, attempt, fence, begun: at, end: None });
            }
            What::End { fence, how, .. } => self.end(at, pid, fence, how),
            What::Found { state, fence, .. } => self.found = Some((state, fence)),
            _ => {}
        }
    }

    /// Sorts the executions by their fences.
    pub(super) fn sort(&mut self) {
        self.executions.sort_by_key(|execution| (execution.fence, execution.begun));
    }

    /// Returns when the submit was acknowledged as a new task.
    pub(super) fn acked_at(&self) -> Option<u64> {
        match &self.answer {
            Some((at, Answer::Acked { .. })) => Some(*at),
            _ => None,
        }
    }

    /// Returns the id of the task in the queue, as its client received it.
    pub(super) fn acked_id(&self) -> Option<&str> {
        match &self.answer {
            Some((_, Answer::Acked { id })) => Some(id),
            _ => None,
        }
    }

    fn invoke(&mut self, invoked: Invoked) {
        if self.invoked.replace(invoked).is_some() {
            self.oddities
                .push("was submitted twice under one number, which is a bug of the client");
        }
    }

    fn answer(&mut self, at: u64, answer: Answer) {
        if self.answer.replace((at, answer)).is_some() {
            self.oddities.push("was answered twice, which is a bug of the client");
        }
    }

    /// Notes that the latest request of this operator changed nothing, according to the answer.
    fn undone(&mut self, pid: u32, at: u64) {
        let all = [&mut self.cancels, &mut self.requeues, &mut self.deletes];
        if let Some(last) = all.into_iter().max_by_key(|requests| requests.last_of(pid)) {
            last.answer(pid, at, Effect::Undone);
        }
    }

    /// Adds the end of an execution. A process records the start of an execution before its end.
    fn end(&mut self, at: u64, pid: u32, fence: u64, how: How) {
        let mut open = self.executions.iter_mut().rev();
        match open.find(|run| run.pid == pid && run.fence == fence && run.end.is_none()) {
            Some(execution) => execution.end = Some((at, how)),
            None => self.oddities.push("ended an attempt that never began"),
        }
    }
}
