//! Limits of tasks: how many may start in a time, and how many may run at once.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    gate::Gate,
    obstacle_text::time_text,
    options::TaskOptions,
    rate::Rate,
    record::RecordError,
    record_json::{read_limit, write_limit},
};

/// The default burst of a rate is what the rate allows in this time.
const BURST_US: u64 = 10_000;

/// What a limit allows. Without a rate and without `max_working` it allows everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    pub(crate) rate: Option<Rate>,
    pub(crate) burst: Option<u32>,
    pub(crate) max_working: Option<u32>,
}

impl Limit {
    /// Makes a limit that allows everything.
    pub const fn new() -> Self {
        Self { rate: None, burst: None, max_working: None }
    }

    /// Sets how many tasks may start in a time.
    pub const fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets how many tasks may start at once after a pause in which none started. The default is
    /// what the rate allows in 10 ms, and at least 1. In any time `t`, at most `burst - 1` tasks
    /// more than the rate allows in `t` start.
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Sets how many tasks may run at once, over all workers.
    pub const fn max_working(mut self, max_working: u32) -> Self {
        self.max_working = Some(max_working);
        self
    }

    /// Returns the rate, if it has one.
    pub fn rate_limit(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns how many tasks may start at once.
    pub fn burst_limit(&self) -> u32 {
        let of_rate = |rate: Rate| BURST_US.checked_div(rate.interval_us()).unwrap_or(0);
        let usual = self.rate.map_or(1, |rate| u32::try_from(of_rate(rate)).unwrap_or(u32::MAX));
        self.burst.unwrap_or(usual).max(1)
    }

    /// Returns how many tasks may run at once, if that is limited.
    pub fn max_working_limit(&self) -> Option<u32> {
        self.max_working
    }

    pub(crate) fn is_none(&self) -> bool {
        self.rate.is_none() && self.max_working.is_none()
    }

    /// Checks that it can be [set](crate::GateHandle::set).
    ///
    /// # Errors
    /// [`Error::is_invalid`] if it limits nothing, lets no task start, or has a burst without a
    /// rate.
    pub fn check(&self) -> Result<(), Error> {
        self.problem_if_set().map_or(Ok(()), |problem| Err(Error::invalid(problem)))
    }

    /// Returns the reason why this can't be set.
    pub(crate) fn problem_if_set(&self) -> Option<String> {
        let nothing = || self.is_none().then(|| "a limit needs a rate or max_working".to_owned());
        self.problem().or_else(nothing)
    }

    /// Returns the reason why no task can declare this.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(problem) = self.rate.and_then(Rate::problem) {
            return Some(problem);
        }
        if self.max_working == Some(0) {
            return Some("max_working must be at least 1: with 0 no task starts".into());
        }
        match self.burst {
            Some(0) => Some("burst must be at least 1: with 0 no task starts".into()),
            Some(_) if self.rate.is_none() => {
                Some("burst has no effect without a rate; set a rate, too".into())
            }
            _ => None,
        }
    }
}

/// A limit that a task has to pass before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskLimit {
    /// Where it applies.
    pub gate: Gate,
    /// What it allows, unless an operator has set something else.
    pub limit: Limit,
}

impl TaskLimit {
    /// The limits of a call with these options, the innermost first.
    pub(crate) fn of(
        task: &str,
        lane: Option<&str>,
        name: Option<&str>,
        options: &TaskOptions,
    ) -> Vec<Self> {
        let own = options.limits;
        let of_lane = lane
            .filter(|_| !options.lane_limits.is_none())
            .map(|key| Self { gate: Gate::Lane(key.to_owned()), limit: options.lane_limits });
        let gate = match name {
            Some(name) => Some(Gate::Named(name.to_owned())),
            None => (!own.is_none()).then(|| Gate::Task(task.to_owned())),
        };
        of_lane.into_iter().chain(gate.map(|gate| Self { gate, limit: own })).collect()
    }

    /// The limit that a definition declares, if it has one.
    #[doc(hidden)]
    pub fn declared(task: &str, options: &TaskOptions) -> Option<Self> {
        Self::of(task, None, options.limit, options).pop()
    }
}

impl From<TaskLimit> for String {
    fn from(limit: TaskLimit) -> Self {
        write_limit(&limit)
    }
}

impl TryFrom<String> for TaskLimit {
    type Error = RecordError;
    fn try_from(stored: String) -> Result<Self, RecordError> {
        read_limit(&stored)
    }
}

/// A limit of a queue, and what waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitDetails {
    /// Where it applies.
    pub gate: Gate,
    /// What it allows now.
    pub limit: Limit,
    /// Whether the limit was set at run time. Otherwise it is that of the tasks.
    pub is_set: bool,
    /// How many tasks may start at once now, if it has a rate.
    pub tokens: Option<u64>,
    /// When it may next let a task start, by Redis' clock; `None` if that depends on the end of a
    /// running task, or on an operator.
    pub next: Option<DateTime<Utc>>,
    /// How many tasks and permits of it are in use, if `max_working` is limited.
    pub working: u64,
    /// How many tasks wait for it, in state [`Blocked`](crate::TaskState::Blocked). For the limit
    /// or the pause of the whole queue, these are all its ready tasks while it lets none start,
    /// and the delayed ones and those to retry that are due.
    pub waiting: u64,
    /// Who has paused it, and until when.
    pub shut: Option<Shut>,
}

impl LimitDetails {
    /// Returns whether tasks wait for it, or have used it lately.
    pub(crate) fn is_used(&self) -> bool {
        let burst = u64::from(self.limit.burst_limit());
        let is_stored = self.is_set || self.shut.is_some();
        // Details that nobody has stored are those of a limit in use.
        let is_spent = self.tokens.map_or(!is_stored, |left| left < burst);
        self.waiting > 0 || self.working > 0 || is_spent
    }
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shut {
    /// Since when, by Redis' clock.
    pub since: DateTime<Utc>,
    /// Until when; `None`: until somebody resumes it.
    pub until: Option<DateTime<Utc>>,
    /// Who has paused it, as given; or the id of the task whose [`Retry`](crate::Retry) has.
    pub by: String,
    /// Why, as given; or the error of that task, at most 200 characters.
    pub why: String,
}

/// Says what it allows: `5/s with bursts of 3 and 8 at once`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate_limit().map(|rate| match self.burst_limit() {
            1 => rate.to_string(),
            burst => format!("{rate} with bursts of {burst}"),
        });
        let working = self.max_working_limit().map(|max| format!("{max} at once"));
        f.write_str(&rate.into_iter().chain(working).collect::<Vec<_>>().join(" and "))
    }
}

/// Says who has paused it, as a part of a sentence: `paused by ann (a deploy) until it is resumed`.
impl fmt::Display for Shut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("paused")?;
        if !self.by.is_empty() {
            write!(f, " by {}", self.by)?;
        }
        if !self.why.is_empty() {
            write!(f, " ({})", self.why)?;
        }
        match self.until {
            Some(until) => write!(f, " until {}", time_text(until)),
            None => f.write_str(" until it is resumed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_burst_is_what_the_rate_allows_in_10_ms() {
        let burst = |rate| Limit::new().rate(rate).burst_limit();
        assert_eq!([Rate::per_second(10), Rate::per_second(100)].map(burst), [1, 1]);
        assert_eq!([Rate::per_second(1_000), Rate::per_second(100_000)].map(burst), [10, 1_000]);
        assert_eq!(Limit::new().rate(Rate::per_second(1)).burst(7).burst_limit(), 7);
        assert_eq!(Limit::new().burst_limit(), 1);
    }

    #[test]
    fn a_limit_that_lets_nothing_start_is_refused() {
        let rate = Rate::per_second(1);
        Limit::new().rate(rate).burst(1).max_working(1).check().unwrap();
        assert!(Limit::new().check().unwrap_err().to_string().contains("needs a rate"));
        for (limit, word) in [
            (Limit::new().rate(Rate::per_second(0)), "rate of 0"),
            (Limit::new().rate(rate).burst(0), "burst"),
            (Limit::new().burst(2), "without a rate"),
            (Limit::new().max_working(0), "max_working"),
        ] {
            let problem = limit.check().unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(word), "{problem}");
        }
    }
}
