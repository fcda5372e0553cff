//! The queues that a command has not read, because Redis refuses to: [`Unread`].

use optimus_core::{Error, QueueName};

/// The queues that Redis has refused to read so far.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// Each queue, and why it can't be read.
    queues: Vec<(QueueName, String)>,
    /// Whether another queue was read.
    has_read: bool,
}

impl Unread {
    /// Returns what was read of a queue; `None` if Redis refuses to read it.
    ///
    /// # Errors
    /// An error that the other queues would have, too.
    pub(crate) fn sort<T>(
        &mut self,
        queue: &QueueName,
        answer: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(found) => {
                self.has_read = true;
                Ok(Some(found))
            }
            Err(problem) if problem.is_rejected() => {
                self.queues.push((queue.clone(), unreadable(queue, &problem)));
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns whether queues were asked for, and none could be read.
    pub(crate) fn is_all(&self) -> bool {
        !self.has_read && !self.is_empty()
    }

    /// Returns why they can't be read, in one line.
    pub(crate) fn text(&self) -> String {
        self.problems().join("; ")
    }

    /// Returns why each of them can't be read.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.queues.iter().map(|(_, problem)| problem.clone()).collect()
    }

    /// Returns the queues, each with why it can't be read.
    pub(crate) fn queues(&self) -> &[(QueueName, String)] {
        &self.queues
    }
}

/// Says that a queue can't be read.
pub(crate) fn unreadable(queue: &QueueName, problem: &Error) -> String {
    format!("queue {queue} can't be read: {problem}")
}
