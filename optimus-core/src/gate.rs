//! The place in a queue where a limit or a pause applies: [`Gate`].

use std::{fmt, str::FromStr};

use crate::{Error, id::validate_name, lane};

/// What operators write for [`Gate::Queue`].
const QUEUE: &str = "queue";

/// The place in a queue where a limit or a pause applies. Operators write it as `queue`,
/// `task:NAME`, `lane:KEY` or `limit:NAME`, which [`FromStr`] reads and [`text`](Self::text)
/// returns.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::Gate;
///
/// let gate: Gate = "lane:user-7".parse()?;
/// assert_eq!((&gate, gate.text()), (&Gate::Lane("user-7".into()), "lane:user-7".into()));
/// assert!("limit:a name with spaces".parse::<Gate>().is_err());
/// # Ok::<(), optimus::Error>(())
/// ```
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
    /// Returns what operators write: `queue`, `task:NAME`, `lane:KEY` or `limit:NAME`.
    pub fn text(&self) -> String {
        match self {
            Self::Queue => QUEUE.to_owned(),
            gate => gate.stored(),
        }
    }

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

impl FromStr for Gate {
    type Err = Error;

    /// Reads `queue`, `task:NAME`, `lane:KEY` or `limit:NAME`. Refuses names that no task can have.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |problem: &str| {
            let forms = "write queue, task:NAME, lane:KEY or limit:NAME";
            Err(Error::invalid(format!("{text:?} is not the place of a limit{problem}; {forms}")))
        };
        let read = match text {
            QUEUE => Some(Self::Queue),
            text => Self::from_stored(text).filter(|gate| *gate != Self::Queue),
        };
        let Some(gate) = read else { return refused("") };
        match gate.problem() {
            Some(problem) => refused(&format!(": {problem}")),
            None => Ok(gate),
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
    fn what_operators_write_is_a_gate_and_what_no_task_can_have_is_refused() {
        let key = "x".repeat(512);
        for text in ["queue", "task:send", "lane:a:b c", "limit:stripe", &format!("lane:{key}")] {
            assert_eq!(text.parse::<Gate>().unwrap().text(), text);
        }
        let long = format!("lane:{key}x");
        for wrong in
            ["", "send", "task:", "task:a b", "limit:", "lane:", "lane:\n", "group:x", &long]
        {
            let problem = wrong.parse::<Gate>().unwrap_err();
            assert!(problem.is_invalid(), "{problem}");
            assert!(problem.to_string().contains("lane:KEY"), "{problem}");
        }
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
