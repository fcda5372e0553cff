//! What an operator asks a process to do: [`ProcessHandle`].

use std::fmt;

use crate::{
    Error,
    broker::{Broker, BrokerError, Refusal},
    client::Client,
    id::WorkerId,
};

/// Asks a process for something; [`Client::process`] makes it. The process obeys within a
/// second. If its wakeup is lost, it obeys within 5 s, or 4 min if it is idle.
#[derive(Clone)]
pub struct ProcessHandle {
    id: WorkerId,
    broker: Broker,
}

/// Whether a process was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the process may not be there"]
pub enum ProcessAnswer {
    /// It was asked, and obeys soon.
    Asked,
    /// No process of that id is there.
    Absent,
}

/// What a process is asked for. The words are those that Redis stores.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Quiet,
    Resume,
    Stop,
    Slots(usize),
}

impl Wish {
    /// Reads a stored wish. A wish of a later release is none.
    pub fn read(text: &str) -> Option<Self> {
        match text.split_once(' ').unwrap_or((text, "")) {
            ("quiet", "") => Some(Self::Quiet),
            ("resume", "") => Some(Self::Resume),
            ("stop", "") => Some(Self::Stop),
            ("slots", count) => count.parse().ok().map(Self::Slots),
            _ => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Quiet => "quiet".to_owned(),
            Self::Resume => "resume".to_owned(),
            Self::Stop => "stop".to_owned(),
            Self::Slots(count) => format!("slots {count}"),
        }
    }
}

impl Client {
    /// Returns a handle that asks a process for something. The id is that of
    /// [`ProcessDetails`](crate::ProcessDetails).
    pub fn process(&self, id: &WorkerId) -> ProcessHandle {
        ProcessHandle { id: id.clone(), broker: self.inspector().broker }
    }
}

impl ProcessHandle {
    /// Lets the process begin no more tasks. Those that it runs go on. It stays so until
    /// [`resume`](Self::resume), or until the process ends.
    ///
    /// # Errors
    /// [`Error::is_unavailable`], as for all methods here. To repeat a call does no harm.
    pub async fn quiet(&self) -> Result<ProcessAnswer, Error> {
        self.ask(Wish::Quiet).await
    }

    /// Lets the process use all its slots again, after [`quiet`](Self::quiet) or
    /// [`slots`](Self::slots).
    ///
    /// # Errors
    /// As of [`quiet`](Self::quiet).
    pub async fn resume(&self) -> Result<ProcessAnswer, Error> {
        self.ask(Wish::Resume).await
    }

    /// Ends the worker as a first signal does: running tasks get the worker's grace, and then go
    /// back to their queues.
    ///
    /// # Errors
    /// As of [`quiet`](Self::quiet).
    pub async fn stop(&self) -> Result<ProcessAnswer, Error> {
        self.ask(Wish::Stop).await
    }

    /// Lets the process run at most this many tasks at the same time, and no more than the
    /// concurrency with which it has started. Tasks that run go on.
    ///
    /// # Errors
    /// As of [`quiet`](Self::quiet); [`Error::is_invalid`] if `count` is 0.
    pub async fn slots(&self, count: usize) -> Result<ProcessAnswer, Error> {
        if count == 0 {
            return Err(Error::invalid("a process can't have 0 slots; use `quiet`"));
        }
        self.ask(Wish::Slots(count)).await
    }

    async fn ask(&self, wish: Wish) -> Result<ProcessAnswer, Error> {
        match self.broker.wish(&Broker::fleet(), &self.id, &wish.text()).await {
            Ok(()) => Ok(ProcessAnswer::Asked),
            Err(BrokerError::Refused(Refusal::Absent, _)) => Ok(ProcessAnswer::Absent),
            Err(problem) => Err(problem.into()),
        }
    }
}

impl fmt::Debug for ProcessHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wish_is_read_as_it_is_stored_and_others_are_none() {
        for wish in [Wish::Quiet, Wish::Resume, Wish::Stop, Wish::Slots(7)] {
            assert_eq!(Wish::read(&wish.text()), Some(wish));
        }
        for strange in ["", "quiet now", "slots", "slots many", "dance"] {
            assert_eq!(Wish::read(strange), None, "{strange}");
        }
    }
}
