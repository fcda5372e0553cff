//! What was done with many tasks: [`Tally`].

use optimus_core::{Error, Operation, OperationProblem, TaskId};
use serde::Serialize;

use crate::{
    failure::{Exit, Failure, exit_of},
    output::{Out, clean, text},
};

/// How many problems are printed.
const PROBLEMS_MAX: usize = 20;

/// What was done with many tasks.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tally {
    /// How many tasks were changed.
    done: u64,
    /// How many run, and were asked to stop.
    #[serde(skip_serializing_if = "is_zero")]
    asked_to_stop: u64,
    /// How many are ready or run, so that there is nothing to do.
    #[serde(skip_serializing_if = "is_zero")]
    started: u64,
    /// How many are in a state that does not allow it.
    refused: u64,
    /// How many no longer exist.
    gone: u64,
    /// How many were not asked about, because Redis went away.
    left: u64,
    /// The operation that has changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    problems: Vec<Problem>,
    /// Which tasks could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
    #[serde(skip)]
    stopped_by: Option<Exit>,
}

#[derive(Debug, Serialize)]
struct Problem {
    id: String,
    error: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What became of one task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Done,
    AskedToStop,
    Gone,
    /// It runs or is ready, so there is nothing to do.
    Started,
}

impl Tally {
    /// Returns what an operation has done so far.
    pub(crate) fn of(operation: &Operation) -> Self {
        let problem = |problem: &OperationProblem| Problem {
            id: problem.id.to_string(),
            error: problem.error.clone(),
        };
        Self {
            done: operation.done,
            asked_to_stop: operation.asked_to_stop,
            started: 0,
            refused: operation.refused,
            gone: operation.gone,
            left: operation.left(),
            operation: Some(operation.id.clone()),
            problems: operation.problems.iter().map(problem).collect(),
            unread: operation.unread.clone(),
            stopped_by: (operation.left() > 0).then_some(Exit::Refused),
        }
    }

    pub(crate) fn add(&mut self, id: &TaskId, fate: Result<Fate, Error>) {
        let problem = match fate {
            Ok(Fate::Done) => return self.done += 1,
            Ok(Fate::AskedToStop) => return self.asked_to_stop += 1,
            Ok(Fate::Gone) => return self.gone += 1,
            Ok(Fate::Started) => return self.started += 1,
            Err(problem) => problem,
        };
        match exit_of(&problem) {
            Exit::NotFound => self.gone += 1,
            Exit::Refused | Exit::Usage => self.refused += 1,
            exit => {
                self.left += 1;
                self.stopped_by = Some(exit);
            }
        }
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { id: id.to_string(), error: problem.to_string() });
        }
    }

    /// Counts tasks that were not asked about.
    pub(crate) fn leave(&mut self, count: usize) {
        self.left += count as u64;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped_by.is_some()
    }

    pub(crate) fn seen(&self) -> u64 {
        self.done + self.asked_to_stop + self.started + self.refused + self.gone
    }

    /// Returns the counts in words. `verb` is such as `requeued`.
    pub(crate) fn text(&self, verb: &str) -> String {
        let mut parts = vec![format!("{} {verb}", text::number(self.done))];
        let others = [
            (self.asked_to_stop, "asked to stop"),
            (self.started, "ready or running already"),
            (self.refused, "refused"),
            (self.gone, "gone"),
            (self.left, "not reached"),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0);
        parts.extend(others.map(|(count, what)| format!("{} {what}", text::number(*count))));
        parts.join(" · ")
    }

    /// Prints the counts, and returns the exit code. `verb` is such as `requeued`.
    pub(crate) fn print(&self, out: &Out, verb: &str) -> Result<Exit, Failure> {
        out.done(self, &self.text(verb))?;
        for Problem { error, .. } in &self.problems {
            out.hint(&format!("  {error}"));
        }
        for line in &self.unread {
            out.hint(&format!("  {}", clean::line(line)));
        }
        let hidden = (self.refused + self.left).saturating_sub(self.problems.len() as u64);
        if hidden > 0 {
            out.hint(&format!("  and {} more", text::number(hidden)));
        }
        Ok(self.exit())
    }

    fn exit(&self) -> Exit {
        let is_any_done = self.done + self.asked_to_stop + self.started > 0;
        let is_any_left = self.refused + self.gone + self.left > 0 || !self.unread.is_empty();
        match self.stopped_by {
            _ if !is_any_left => Exit::Done,
            _ if is_any_done => Exit::Partly,
            Some(exit) => exit,
            None if self.refused > 0 || !self.unread.is_empty() => Exit::Refused,
            None => Exit::NotFound,
        }
    }
}
