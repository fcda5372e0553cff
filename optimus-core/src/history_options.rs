//! What a queue keeps of the tasks that succeed or die: [`HistoryOptions`].

use std::time::Duration;

use chrono::NaiveDate;
use serde::Serialize;

use crate::{
    Error, broker::HistoryStored, id::validate_name, options::TaskOptions, platform::instant,
    state::TaskState,
};

/// The longest time for which a history is kept, in days.
pub const HISTORY_DAYS_MAX: u32 = 366;
/// The fewest bytes of a history.
pub const HISTORY_BYTES_MIN: u64 = 1 << 20;

const BYTES_DEFAULT: u64 = 64 << 20;
/// How many tasks a history can name.
const TASKS_MAX: usize = 64;
pub(crate) const DAY_MS: u64 = 86_400_000;

/// For how long a queue keeps a line for each task that succeeds or dies, in how many bytes, and of
/// which tasks. A line of a success takes about 80 bytes, and one of a death 150 to 1,200.
///
/// ```
/// use optimus_core::HistoryOptions;
///
/// let half_a_year = HistoryOptions::days(180).bytes(256 << 20).tasks(["send_mail"]);
/// # let _ = half_a_year;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryOptions {
    days: u32,
    bytes: u64,
    /// All tasks if `None`.
    tasks: Option<Vec<String>>,
}

impl HistoryOptions {
    /// Keeps this many days, the present one included: up to [`HISTORY_DAYS_MAX`].
    pub fn days(days: u32) -> Self {
        Self { days, bytes: BYTES_DEFAULT, tasks: None }
    }

    /// Sets how many bytes the lines of the queue may take, at least [`HISTORY_BYTES_MIN`]. The
    /// oldest leave when there are more. The default is 64 MiB.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Keeps only tasks with these names, up to 64.
    pub fn tasks<T: Into<String>>(mut self, tasks: impl IntoIterator<Item = T>) -> Self {
        self.tasks = Some(tasks.into_iter().map(Into::into).collect());
        self
    }

    /// Returns how many days are kept.
    pub fn kept_days(&self) -> u32 {
        self.days
    }

    /// Returns how many bytes the lines may take.
    pub fn kept_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the tasks that are kept: `None` for all, and none once it was stopped.
    pub fn kept_tasks(&self) -> Option<&[String]> {
        self.tasks.as_deref()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let tasks = self.tasks.as_deref();
        if !(1..=HISTORY_DAYS_MAX).contains(&self.days) {
            let days = self.days;
            return Err(Error::invalid(format!(
                "a history of {days} days can't be kept; use 1 to {HISTORY_DAYS_MAX}"
            )));
        }
        if self.bytes < HISTORY_BYTES_MIN {
            return Err(Error::invalid(format!(
                "a history needs at least {HISTORY_BYTES_MIN} bytes, and {} were given",
                self.bytes
            )));
        }
        if tasks.is_some_and(|tasks| tasks.is_empty() || tasks.len() > TASKS_MAX) {
            return Err(Error::invalid(format!(
                "a history names 1 to {TASKS_MAX} tasks; without any, it keeps all tasks"
            )));
        }
        for task in tasks.unwrap_or_default() {
            validate_name(task).map_err(|problem| {
                Error::invalid(format!("no task has the name {task:?}: {problem}"))
            })?;
        }
        Ok(())
    }

    /// Returns the days, the bytes and the tasks as the scripts read them.
    #[doc(hidden)]
    pub fn stored(&self) -> (u32, u64, String) {
        let tasks = match &self.tasks {
            None => "*".to_owned(),
            Some(tasks) if tasks.is_empty() => "-".to_owned(),
            Some(tasks) => format!(",{},", tasks.join(",")),
        };
        (self.days, self.bytes, tasks)
    }

    /// Reads what a script returns.
    #[doc(hidden)]
    pub fn read(stored: &str) -> Option<Self> {
        let mut words = stored.split(' ');
        let (days, bytes, tasks) = (words.next()?, words.next()?, words.next()?);
        let names = tasks.strip_prefix(',').unwrap_or_default().split_terminator(',');
        Some(Self {
            days: days.parse().ok()?,
            bytes: bytes.parse().ok()?,
            tasks: (tasks != "*").then(|| names.map(str::to_owned).collect()),
        })
    }
}

impl TaskOptions {
    /// Returns for how many days the queue keeps a line for each task.
    #[doc(hidden)]
    pub fn history_days(&self) -> Option<u32> {
        self.history.and_then(declared_days)
    }
}

/// Returns the days that the definition of a task declares, if it can.
fn declared_days(time: Duration) -> Option<u32> {
    let ms = u64::try_from(time.as_millis()).ok()?;
    let is_whole = ms.is_multiple_of(DAY_MS) && time.subsec_nanos() == 0;
    let days = u32::try_from(ms / DAY_MS).ok().filter(|days| (1..=HISTORY_DAYS_MAX).contains(days));
    days.filter(|_| is_whole)
}

/// Returns the reason why the definition of a task can't declare this time.
pub(crate) fn declared_problem(time: Duration) -> Option<String> {
    let text = || format!("history must be 1 to {HISTORY_DAYS_MAX} whole days");
    declared_days(time).is_none().then(text)
}

/// What the history of a queue keeps, and what it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryDetails {
    /// What it keeps; `None` if nothing was set.
    pub options: Option<HistoryOptions>,
    /// The days that it has, the oldest first. A success comes to its day once 1,000 others have
    /// followed it.
    pub days: Vec<HistoryDay>,
    /// The bytes of all days.
    pub bytes: u64,
}

/// A day of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryDay {
    /// The day, in UTC.
    pub day: NaiveDate,
    /// The bytes of its successes.
    pub success_bytes: u64,
    /// The bytes of its deaths.
    pub dead_bytes: u64,
}

impl HistoryDetails {
    pub(crate) fn of(stored: HistoryStored) -> Self {
        let mut details = Self {
            options: stored.wanted.as_deref().and_then(HistoryOptions::read),
            ..Self::default()
        };
        for (state, day, bytes) in stored.lists {
            let day = instant(day.saturating_mul(DAY_MS)).date_naive();
            if details.days.last().is_none_or(|last| last.day != day) {
                details.days.push(HistoryDay { day, success_bytes: 0, dead_bytes: 0 });
            }
            if let Some(last) = details.days.last_mut() {
                let bytes_of = if state == TaskState::Dead {
                    &mut last.dead_bytes
                } else {
                    &mut last.success_bytes
                };
                *bytes_of += bytes;
            }
            details.bytes += bytes;
        }
        details
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_what_is_stored() {
        let all = HistoryOptions::days(180);
        for options in [all.clone(), all.clone().tasks(["a", "b"]), all.tasks([""; 0]).bytes(7)] {
            let (days, bytes, tasks) = options.stored();
            assert_eq!(HistoryOptions::read(&format!("{days} {bytes} {tasks}")), Some(options));
        }
        assert_eq!(HistoryOptions::read("5 what *"), None);
    }

    #[test]
    fn options_that_cannot_be_kept_are_refused_with_what_to_do() {
        let good = HistoryOptions::days(366).bytes(HISTORY_BYTES_MIN).tasks(["send_mail"]);
        good.check().unwrap();
        for (options, why) in [
            (HistoryOptions::days(0), "use 1 to 366"),
            (HistoryOptions::days(367), "use 1 to 366"),
            (HistoryOptions::days(1).bytes(5), "at least 1048576 bytes"),
            (HistoryOptions::days(1).tasks([""; 0]), "1 to 64 tasks"),
            (HistoryOptions::days(1).tasks(vec!["a"; 65]), "1 to 64 tasks"),
            (HistoryOptions::days(1).tasks(["a b"]), "\"a b\""),
            (HistoryOptions::days(1).tasks(["a,b"]), "\"a,b\""),
        ] {
            let problem = options.check().unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(why), "{problem}");
        }
    }
}
