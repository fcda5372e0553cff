//! The place in a queue where a limit or a pause applies: [`Gate`].

use std::fmt;

use crate::{id::validate_name, lane};

/// The place in a queue where a limit or a pause applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gate {
    /// All tasks of the queue.
    Queue,
    /// The tasks of this name.
    Task(String),
    /// The tasks of the lane with this key.
    Lane(String),
    /// The tasks that name this limit, with `limit = "…"`.
    Named(String),
}

impl Gate {
    /// Returns the form in keys and headers.
    #[doc(hidden)]
    pub fn stored(&self) -> String {
        match self {
            Self::Queue => String::new(),
            Self::Task(name) => format!("task:{name}"),
            Self::Lane(key) => format!("lane:{key}"),
            Self::Named(name) => format!("limit:{name}"),
        }
    }

    /// Reads the stored form.
    #[doc(hidden)]
    pub fn from_stored(stored: &str) -> Option<Self> {
        match stored.split_once(':') {
            Some(("task", name)) => Some(Self::Task(name.into())),
            Some(("lane", key)) => Some(Self::Lane(key.into())),
            Some(("limit", name)) => Some(Self::Named(name.into())),
            None if stored.is_empty() => Some(Self::Queue),
            _ => None,
        }
    }

    /// Returns the reason why no task can have this gate.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Queue => None,
            Self::Task(name) => Some(format!("the task's name: {}", validate_name(name).err()?)),
            Self::Named(name) => Some(format!("the limit's name: {}", validate_name(name).err()?)),
            Self::Lane(key) => lane::problem_of(key),
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue => f.write_str("the queue"),
            Self::Task(name) => write!(f, "task {name}"),
            Self::Lane(key) => write!(f, "lane {key}"),
            Self::Named(name) => write!(f, "limit {name}"),
        }
    }
}

/// What pauses after the [`Retry`](crate::Retry) of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutScope {
    /// The task's lane.
    Lane,
    /// The tasks of its name.
    Task,
    /// The tasks of its limit.
    Limit,
    /// Its queue.
    Queue,
}

impl ShutScope {
    /// Returns the word for it in reports and texts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::Task => "task",
            Self::Limit => "limit",
            Self::Queue => "queue",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_read_back_from_its_stored_form() {
        let lane = "a:b limit:{x}".to_owned();
        for (gate, stored, shown) in [
            (Gate::Queue, "", "the queue"),
            (Gate::Task("send".into()), "task:send", "task send"),
            (Gate::Lane(lane), "lane:a:b limit:{x}", "lane a:b limit:{x}"),
            (Gate::Named("stripe".into()), "limit:stripe", "limit stripe"),
        ] {
            assert_eq!((&*gate.stored(), &*gate.to_string()), (stored, shown));
            assert_eq!(Gate::from_stored(stored), Some(gate));
        }
        assert_eq!(["x", "x:y", ":"].map(Gate::from_stored), [None, None, None]);
    }

    #[test]
    fn the_name_of_a_gate_is_checked() {
        assert_eq!(Gate::Queue.problem(), None);
        for gate in [Gate::Task("a b".into()), Gate::Named(String::new()), Gate::Lane("\n".into())]
        {
            assert!(gate.problem().is_some(), "{gate}");
        }
    }
}
