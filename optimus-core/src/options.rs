//! The options of a definition ([`TaskOptions`]) and those that a call overrides ([`CallOptions`]).

use std::{sync::LazyLock, time::Duration};

use chrono::DateTime;
use serde::{Deserialize, Serialize};

pub use crate::due::Due;
use crate::{
    Error,
    after_options::{AfterOptions, CallAfter},
    gather::Window,
    history_options,
    id::{QueueName, TaskId, validate_name},
    lane::LaneFailure,
    limit::Limit,
    platform,
    rate::Rate,
    retry::Backoff,
};

/// The largest priority; the smallest is its negative.
pub const PRIORITY_MAX: i8 = 100;

/// The longest duration that an option of a task may have: 1,800 days.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(1_800 * 24 * 60 * 60);

/// What happens to a task if its worker is lost, or shuts down and drops the handler after the
/// grace time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// The task runs again (at least once), until `max_losses` workers were lost.
    #[default]
    Retry,
    /// The task is dead, and does not run again. With `max_retry = 0`, the task runs at most once.
    Dead,
}

/// The options of a task's definition, as in `#[task(...)]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskOptions {
    pub(crate) queue: &'static str,
    pub(crate) priority: i8,
    pub(crate) timeout: Duration,
    pub(crate) max_retry: u32,
    pub(crate) backoff: Backoff,
    pub(crate) biz_window: Option<Duration>,
    pub(crate) result_ttl: Duration,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) max_losses: u32,
    pub(crate) lane_width: u16,
    pub(crate) on_lane_failure: LaneFailure,
    pub(crate) after: AfterOptions,
    pub(crate) limit: Option<&'static str>,
    pub(crate) limits: Limit,
    pub(crate) lane_limits: Limit,
    pub(crate) cost: u32,
    pub(crate) gather: Option<Window>,
    pub(crate) history: Option<Duration>,
}

impl TaskOptions {
    /// The defaults, which stored records omit. They are part of the record format.
    pub const DEFAULT: Self = Self {
        queue: QueueName::DEFAULT,
        priority: 0,
        timeout: Duration::from_secs(600),
        max_retry: 3,
        backoff: Backoff::Sidekiq,
        biz_window: None,
        result_ttl: Duration::from_secs(600),
        expires_in: None,
        on_lost: OnLost::Retry,
        max_losses: 3,
        lane_width: 1,
        on_lane_failure: LaneFailure::Skip,
        after: AfterOptions::DEFAULT,
        limit: None,
        limits: Limit::new(),
        lane_limits: Limit::new(),
        cost: 1,
        gather: None,
        history: None,
    };

    /// Returns the defaults: queue `default`, a timeout of 600 s, 3 retries with Sidekiq's waits, a
    /// result that is kept for 10 min, 3 losses.
    pub const fn new() -> Self {
        Self::DEFAULT
    }

    /// Sets the queue of the calls.
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the priority, from -100 to 100. Each step counts as a minute of waiting, so no task
    /// starves.
    pub const fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets how long one attempt may run.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many attempts may follow the first failed one. With 0 there are no retries.
    pub const fn max_retry(mut self, max_retry: u32) -> Self {
        self.max_retry = max_retry;
        self
    }

    /// Sets the wait before each retry.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how long after the submit a biz id stays taken at least, even if its task succeeds
    /// earlier. A task that takes longer keeps its biz id until its end.
    pub const fn biz_window(mut self, window: Duration) -> Self {
        self.biz_window = Some(window);
        self
    }

    /// Sets how long a result is kept after success. With zero it is not kept.
    pub const fn result_ttl(mut self, ttl: Duration) -> Self {
        self.result_ttl = ttl;
        self
    }

    /// Sets the time after which a task that has not started expires, counted from its submit.
    /// Retries and snoozes do not expire. A requeue gives a task the whole time again. A delay must
    /// be shorter.
    pub const fn expires_in(mut self, expires_in: Duration) -> Self {
        self.expires_in = Some(expires_in);
        self
    }

    /// Sets what happens to the task when its worker is lost.
    pub const fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Sets after how many lost workers the task is marked Dead. If the next loss would mark a task
    /// Dead, the task runs alone on its worker, so that no task is marked Dead because of another
    /// one.
    pub const fn max_losses(mut self, max_losses: u32) -> Self {
        self.max_losses = max_losses;
        self
    }

    /// Sets how many tasks of a [lane](crate::Task::lane) may run at once. With 1, the default,
    /// they run in order.
    pub const fn lane_width(mut self, width: u16) -> Self {
        self.lane_width = width;
        self
    }

    /// Sets what happens to a [lane](crate::Task::lane) when one of its tasks ends as Dead.
    pub const fn on_lane_failure(mut self, on_failure: LaneFailure) -> Self {
        self.on_lane_failure = on_failure;
        self
    }

    /// Names the limit that [`rate`](Self::rate), [`burst`](Self::burst) and
    /// [`max_working`](Self::max_working) describe, so that tasks of several names in a queue share
    /// it. Without a name, the limit is the task's own.
    pub const fn limit(mut self, name: &'static str) -> Self {
        self.limit = Some(name);
        self
    }

    /// Sets how many tasks may start in a time, over all workers.
    pub const fn rate(mut self, rate: Rate) -> Self {
        self.limits = self.limits.rate(rate);
        self
    }

    /// Sets how many tasks may start at once within the [`rate`](Self::rate); see
    /// [`Limit::burst`].
    pub const fn burst(mut self, burst: u32) -> Self {
        self.limits = self.limits.burst(burst);
        self
    }

    /// Sets how many tasks may run at once, over all workers.
    pub const fn max_working(mut self, max_working: u32) -> Self {
        self.limits = self.limits.max_working(max_working);
        self
    }

    /// Sets how many tasks of each [lane](crate::Task::lane) may start in a time.
    pub const fn lane_rate(mut self, rate: Rate) -> Self {
        self.lane_limits = self.lane_limits.rate(rate);
        self
    }

    /// Sets how many tasks of a lane may start at once within the [`lane_rate`](Self::lane_rate);
    /// see [`Limit::burst`].
    pub const fn lane_burst(mut self, burst: u32) -> Self {
        self.lane_limits = self.lane_limits.burst(burst);
        self
    }

    /// Sets how much of a rate each task uses: one of cost 3 counts as three tasks.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Sets for how many whole days, up to 366, the [queue](Self::queue) keeps a line for each task
    /// of this name that succeeds or dies. A worker sets this when it starts; see
    /// [`Client::keep_history`](crate::Client::keep_history).
    pub const fn history(mut self, time: Duration) -> Self {
        self.history = Some(time);
        self
    }

    /// Returns the queue's name as written.
    pub fn queue_name(&self) -> &'static str {
        self.queue
    }

    /// Returns the wait before each retry.
    pub fn backoff_formula(&self) -> Backoff {
        self.backoff
    }

    /// Refuses invalid options.
    ///
    /// # Errors
    /// [`Error::is_invalid`], which names the task, the option and what to write instead.
    pub fn validate(&self, task: &str) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::invalid(format!("task {task:?}: {what}")));
        if let Err(problem) = QueueName::check(self.queue) {
            return refuse(problem.to_string());
        }
        for (name, value) in [
            ("timeout", Some(self.timeout)),
            ("biz_window", self.biz_window),
            ("expires_in", self.expires_in),
        ] {
            if value.is_some_and(|value| value.is_zero() || value > DURATION_MAX) {
                return refuse(format!("{name} must be above zero and below 1,800 days"));
            }
        }
        if self.result_ttl > DURATION_MAX {
            return refuse("result_ttl must be below 1,800 days".into());
        }
        if self.priority.unsigned_abs() > PRIORITY_MAX.unsigned_abs() {
            return refuse(format!("priority must be between -{PRIORITY_MAX} and {PRIORITY_MAX}"));
        }
        if self.max_losses == 0 {
            return refuse("max_losses must be at least 1; for at-most-once use on_lost".into());
        }
        if self.lane_width == 0 {
            return refuse("lane_width must be at least 1: with 0 no task of the lane runs".into());
        }
        if self.cost == 0 {
            return refuse("cost must be at least 1: a task of cost 0 would pass any rate".into());
        }
        if let Some(Err(problem)) = self.limit.map(validate_name) {
            return refuse(format!("the limit's name: {problem}"));
        }
        for (prefix, limit) in [("", self.limits), ("lane_", self.lane_limits)] {
            if let Some(problem) = limit.problem() {
                return refuse(format!("{prefix}{problem}"));
            }
        }
        let problem = self.after.problem().or_else(|| self.backoff.problem().map(Into::into));
        let window = || self.gather.and_then(|window| window.problem(self.expires_in));
        let history = || self.history.and_then(history_options::declared_problem);
        problem.or_else(window).or_else(history).map_or(Ok(()), refuse)
    }
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The options that a call overrides; `None` keeps that of the definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallOptions {
    pub(crate) id: Option<TaskId>,
    pub(crate) queue: Option<String>,
    pub(crate) priority: Option<i8>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retry: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) biz_id: Option<String>,
    pub(crate) biz_window: Option<Duration>,
    pub(crate) result_ttl: Option<Duration>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) max_losses: Option<u32>,
    pub(crate) lane: Option<String>,
    pub(crate) lane_width: Option<u16>,
    pub(crate) on_lane_failure: Option<LaneFailure>,
    pub(crate) after: CallAfter,
    pub(crate) limit: Option<String>,
    pub(crate) lane_rate: Option<Rate>,
    pub(crate) cost: Option<u32>,
    pub(crate) by: Option<String>,
    pub(crate) due: Due,
}

/// The options of a call that sets none.
pub(crate) static CALL_OPTIONS_NONE: LazyLock<CallOptions> = LazyLock::new(CallOptions::default);

impl CallOptions {
    /// Returns the definition's options with the overrides of this call (except the queue).
    pub(crate) fn over(&self, mut options: TaskOptions) -> TaskOptions {
        options.priority = self.priority.unwrap_or(options.priority);
        options.timeout = self.timeout.unwrap_or(options.timeout);
        options.max_retry = self.max_retry.unwrap_or(options.max_retry);
        options.backoff = self.backoff.unwrap_or(options.backoff);
        options.biz_window = self.biz_window.or(options.biz_window);
        options.result_ttl = self.result_ttl.unwrap_or(options.result_ttl);
        options.expires_in = self.expires_in.or(options.expires_in);
        options.on_lost = self.on_lost.unwrap_or(options.on_lost);
        options.max_losses = self.max_losses.unwrap_or(options.max_losses);
        options.lane_width = self.lane_width.unwrap_or(options.lane_width);
        options.on_lane_failure = self.on_lane_failure.unwrap_or(options.on_lane_failure);
        options.after = self.after.over(options.after);
        options.lane_limits.rate = self.lane_rate.or(options.lane_limits.rate);
        options.cost = self.cost.unwrap_or(options.cost);
        options
    }

    /// Refuses options that contradict each other: `definition` is without this call, `options`
    /// with it.
    ///
    /// # Errors
    /// [`Error::is_invalid`], which names the task and what to write instead.
    pub(crate) fn check(
        &self,
        task: &str,
        definition: &TaskOptions,
        options: &TaskOptions,
        biz_id: Option<&str>,
        lane: Option<&str>,
    ) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::invalid(format!("task {task:?}: {what}")));
        let delay = match self.due {
            Due::Now => Duration::ZERO,
            Due::In(wait) => wait,
            Due::At(at) => (at - DateTime::from(platform::now())).to_std().unwrap_or_default(),
        };
        if delay > DURATION_MAX {
            return refuse("the delay must be below 1,800 days".into());
        }
        if let Some(expires_in) = options.expires_in.filter(|expires_in| delay >= *expires_in) {
            return refuse(format!(
                "it is due {delay:?} after its submit, but expires after {expires_in:?}; \
                 set a longer expires_in or a shorter delay"
            ));
        }
        if options.biz_window.is_some() && biz_id.is_none() {
            return refuse("biz_window has no effect without a biz id; set a biz_id, too".into());
        }
        let of_lane = [
            ("lane_width", self.lane_width.is_some()),
            ("on_lane_failure", self.on_lane_failure.is_some()),
            ("lane_rate", self.lane_rate.is_some()),
        ];
        if let Some((name, _)) = of_lane.into_iter().find(|(_, is_set)| lane.is_none() && *is_set) {
            return refuse(format!("{name} needs a lane; set .lane(…), too"));
        }
        if let Some(Err(problem)) = self.limit.as_deref().map(validate_name) {
            return refuse(format!("the limit's name: {problem}"));
        }
        if matches!(options.backoff, Backoff::Custom(_)) && options.backoff != definition.backoff {
            return refuse(
                "a call can't have a backoff function, because a function can't be stored; \
                 set it in the task's definition, or use another formula here"
                    .into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
