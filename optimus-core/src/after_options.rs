//! The options of a definition or a call that concern prerequisites.

use std::time::Duration;

use crate::{
    Error,
    after::{After, Prerequisite, PrerequisiteFailure},
    options::{DURATION_MAX, TaskOptions},
};

/// The options of a definition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AfterOptions {
    pub(crate) on_failure: PrerequisiteFailure,
    pub(crate) give_up_after: Option<Duration>,
    pub(crate) outcome_ttl: Option<Duration>,
}

impl AfterOptions {
    pub(crate) const DEFAULT: Self =
        Self { on_failure: PrerequisiteFailure::Wait, give_up_after: None, outcome_ttl: None };

    /// Returns the reason why the options are not valid.
    pub(crate) fn problem(&self) -> Option<String> {
        let durations = [("give_up_after", self.give_up_after), ("outcome_ttl", self.outcome_ttl)];
        let is_wrong = |value: Duration| value.is_zero() || value > DURATION_MAX;
        let (name, _) = durations.into_iter().find(|(_, value)| value.is_some_and(is_wrong))?;
        Some(format!("{name} must be above zero and below 1,800 days"))
    }

    /// Returns the wait of a call; `None` if it waits for nothing.
    pub(crate) fn wait(&self, prerequisites: Vec<Prerequisite>) -> Option<After> {
        let after = After::new(prerequisites);
        let Self { on_failure, give_up_after, .. } = *self;
        (!after.prerequisites.is_empty()).then_some(After { on_failure, give_up_after, ..after })
    }
}

/// The options that a call overrides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CallAfter {
    pub(crate) on_failure: Option<PrerequisiteFailure>,
    pub(crate) give_up_after: Option<Duration>,
    pub(crate) outcome_ttl: Option<Duration>,
}

impl CallAfter {
    /// Returns the definition's options with the overrides of this call.
    pub(crate) fn over(&self, definition: AfterOptions) -> AfterOptions {
        AfterOptions {
            on_failure: self.on_failure.unwrap_or(definition.on_failure),
            give_up_after: self.give_up_after.or(definition.give_up_after),
            outcome_ttl: self.outcome_ttl.or(definition.outcome_ttl),
        }
    }

    /// Refuses overrides that have no effect.
    pub(crate) fn check(&self, task: &str, after: Option<&After>) -> Result<(), Error> {
        if after.is_none() && (self.on_failure.is_some() || self.give_up_after.is_some()) {
            return Err(Error::invalid(format!(
                "task {task:?}: on_prerequisite_failure and give_up_after need a prerequisite; \
                 set .after(…), too"
            )));
        }
        Ok(())
    }
}

impl TaskOptions {
    /// Sets what the task does when one of its [prerequisites](crate::Call::after) ends as Dead or
    /// Cancelled.
    pub const fn on_prerequisite_failure(mut self, on_failure: PrerequisiteFailure) -> Self {
        self.after.on_failure = on_failure;
        self
    }

    /// Sets the time from the submit after which a task whose [prerequisites](crate::Call::after)
    /// have not all succeeded gives up and is Dead.
    pub const fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.after.give_up_after = Some(give_up_after);
        self
    }

    /// Sets how long the outcome of a task is remembered for those that wait for it. A task that
    /// others wait for by its biz id needs this option, because they may be submitted after it has
    /// ended.
    pub const fn outcome_ttl(mut self, ttl: Duration) -> Self {
        self.after.outcome_ttl = Some(ttl);
        self
    }
}
