//! The names of attributes and their values. The conventions for messaging may still change, so all
//! names are in this file.

/// The system that passes the message on.
pub(crate) const SYSTEM: &str = "messaging.system";
/// The value of [`SYSTEM`].
pub(crate) const OPTIMUS: &str = "optimus";
/// The kind of the operation, of which the conventions know a few.
pub(crate) const OPERATION_TYPE: &str = "messaging.operation.type";
/// The operation in the words of Optimus.
pub(crate) const OPERATION_NAME: &str = "messaging.operation.name";
/// The queue.
pub(crate) const DESTINATION: &str = "messaging.destination.name";
/// The id of the task.
pub(crate) const MESSAGE_ID: &str = "messaging.message.id";
/// How many calls a run has, if they are gathered.
pub(crate) const BATCH_COUNT: &str = "messaging.batch.message_count";
/// Why an attempt has failed.
pub(crate) const ERROR_TYPE: &str = "error.type";
/// The name of the task. No convention has a name for it.
pub(crate) const TASK: &str = "optimus.task";
/// The number of the attempt, from 1.
pub(crate) const ATTEMPT: &str = "optimus.attempt";
/// What became of the task.
pub(crate) const OUTCOME: &str = "optimus.outcome";

/// The values of one operation.
pub(crate) struct Operation {
    /// The value of [`OPERATION_TYPE`].
    pub(crate) kind: &'static str,
    /// The value of [`OPERATION_NAME`], and the first word of the span.
    pub(crate) name: &'static str,
}

/// A submit. One call of Redis carries the tasks of many submits, so a submit is the creation of a
/// message and not its sending.
pub(crate) const SUBMIT: Operation = Operation { kind: "create", name: "submit" };
/// An attempt.
pub(crate) const RUN: Operation = Operation { kind: "process", name: "run" };

impl Operation {
    /// Returns the name of the span.
    pub(crate) fn span(&self, task: &str) -> String {
        format!("{} {task}", self.name)
    }
}
