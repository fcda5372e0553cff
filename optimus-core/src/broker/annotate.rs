//! `annotate`: the lines that attempts say.

use super::{Broker, BrokerError, ScriptCall, scripts};
use crate::id::{QueueName, TaskId};

/// The most tasks of a call of `annotate`.
pub const ANNOTATED_MAX: usize = 64;

/// Lines that an attempt has said.
#[derive(Debug, Clone)]
pub struct SaidLines {
    /// The task.
    pub id: TaskId,
    /// The fence of the attempt.
    pub fence: u64,
    /// The number of the last line, from 1 for the first one of the attempt.
    pub last: u64,
    /// How many lines these are.
    pub count: usize,
    /// The lines with line breaks between them, each `<ms> <attempt> <text>`.
    pub text: String,
}

impl Broker {
    /// Returns the call that adds lines to the logs of tasks, at most [`ANNOTATED_MAX`]. A repeat
    /// changes nothing.
    pub fn annotate_call(&self, queue: &QueueName, said: &[SaidLines]) -> ScriptCall {
        let mut call = self.call(&scripts::ANNOTATE, queue, "");
        for lines in said {
            call.push(lines.id.stored());
            call.push(lines.fence);
            call.push(lines.last);
            call.push(lines.count);
            call.push(&*lines.text);
        }
        call
    }

    /// Adds lines to the logs of tasks.
    pub async fn annotate(&self, queue: &QueueName, said: &[SaidLines]) -> Result<(), BrokerError> {
        self.run(self.annotate_call(queue, said)).await.map(drop)
    }
}
