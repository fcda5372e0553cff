//! A task that is submitted again and again: [`Schedule`], [`Missed`], [`Overlap`].

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    broker::SizeLimit,
    call_submit::Submit,
    cron_expression::CronExpression,
    id::validate_name,
    lane::{Lane, LaneFailure},
    options::{DURATION_MAX, Due},
    platform,
    record_json::millis,
    submission::Submission,
    time_zone::TimeZone,
    timing::{Pace, Timing},
};

/// The shortest time between two instants of [`Schedule::every`].
const EVERY_MIN: Duration = Duration::from_secs(1);
/// The longest jitter.
const JITTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What happens to the instants at which no worker was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are left out. Only the latest one still counts, for a minute.
    Skip,
    /// The task runs once, for the latest of them; [`Tick::missed`](crate::Tick::missed) counts the
    /// others.
    #[default]
    RunOnce,
    /// The task runs for each of them, up to the latest 1,000. This needs [`Overlap::Queue`] or
    /// [`Overlap::All`].
    All,
}

/// What happens at an instant while the task of an earlier instant has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The instant is left out, and the history says so. A task that waits for a retry has not
    /// ended.
    #[default]
    Skip,
    /// The task waits, in a lane of the schedule's own.
    Queue,
    /// The tasks run side by side.
    All,
}

/// A task that is submitted at the instants of a cron expression, or again and again after the
/// same time. Store it with [`Schedules::put`](crate::Schedules::put).
///
/// ```
/// # use optimus_core as optimus;
/// # use optimus::{BoxError, Call, Context, Task};
/// # use serde::{Deserialize, Serialize};
/// use std::time::Duration;
/// use optimus::{Client, Error, Missed, Schedule};
/// # #[derive(Serialize, Deserialize)]
/// # struct Digest { user: u64 }
/// # impl Task for Digest {
/// #     const NAME: &'static str = "digest";
/// #     type Output = ();
/// #     async fn run(self, _: Context) -> Result<(), BoxError> { Ok(()) }
/// # }
/// # fn digest(user: u64) -> Call<Digest> { Digest { user }.call() }
///
/// async fn sign_up(client: &Client, user: u64, zone: &str) -> Result<(), Error> {
///     let name = format!("digest-{user}");
///     let morning = Schedule::cron(name, "0 8 * * *").tz(zone).missed(Missed::Skip);
///     client.schedules().put(morning.call(digest(user))).await?;
///     let poll = Schedule::every(format!("poll-{user}"), Duration::from_secs(90));
///     client.schedules().put(poll.call(digest(user))).await
/// }
/// # let _ = sign_up;
/// ```
#[derive(Clone)]
pub struct Schedule {
    name: String,
    pace: Wanted,
    zone: String,
    missed: Missed,
    overlap: Overlap,
    jitter: Duration,
    release: Option<String>,
    call: Option<Result<Submission, Fault>>,
}

/// When a schedule is to be due, not yet checked.
#[derive(Debug, Clone)]
enum Wanted {
    Cron(String),
    Every(Duration),
}

/// Why a call can't be submitted. An [`Error`] can't be cloned.
#[derive(Debug, Clone)]
struct Fault(String);

/// A checked schedule.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct CheckedSchedule {
    /// Its name.
    pub name: String,
    /// When it is due, and what happens then.
    pub timing: Timing,
    /// The release of the program whose code has it; `None` for one that is made at run time.
    pub release: Option<String>,
    /// The call that it submits.
    pub submission: Submission,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.call.as_ref().and_then(|call| call.as_ref().ok()).map(Submission::task);
        f.debug_struct("Schedule")
            .field("name", &self.name)
            .field("pace", &self.pace)
            .field("zone", &self.zone)
            .field("task", &task)
            .finish_non_exhaustive()
    }
}

impl Schedule {
    /// Makes a schedule with the instants of a cron expression, in UTC unless [`tz`](Self::tz)
    /// names a zone. The expression has five fields (minute, hour, day of the month, month,
    /// weekday), or six with the second first, or is a word such as `@hourly`. Days also take `L`,
    /// weekdays `FRIL` and `MON#2`.
    ///
    /// The name has 1 to 128 letters, digits, `.`, `_` and `-`. It is the identity of the
    /// schedule in its namespace.
    pub fn cron(name: impl Into<String>, expression: impl Into<String>) -> Self {
        Self::new(name.into(), Wanted::Cron(expression.into()))
    }

    /// Makes a schedule that is due again and again after this time, of a second or more, first
    /// when this time has passed since it was stored. Changes of clocks do not matter to it.
    pub fn every(name: impl Into<String>, time: Duration) -> Self {
        Self::new(name.into(), Wanted::Every(time))
    }

    fn new(name: String, pace: Wanted) -> Self {
        Self {
            name,
            pace,
            zone: TimeZone::Utc.to_string(),
            missed: Missed::default(),
            overlap: Overlap::default(),
            jitter: Duration::ZERO,
            release: None,
            call: None,
        }
    }

    /// Sets the time zone of the cron expression, by its name in the IANA database.
    pub fn tz(mut self, zone: impl Into<String>) -> Self {
        self.zone = zone.into();
        self
    }

    /// Sets what happens to instants at which no worker was there.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Sets what happens at an instant while an earlier task of the schedule has not ended.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Delays each task by up to this time after its instant, so that many schedules of one instant
    /// do not all start at once. The delay of an instant is always the same. With
    /// [`Overlap::Skip`] it is shorter than the time between two instants.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets the call that is submitted, with its options. It can't have an id, a due time or
    /// prerequisites.
    pub fn call(mut self, call: impl Submit) -> Self {
        self.call = Some(call.into_submission().map_err(|problem| Fault(problem.to_string())));
        self
    }

    /// Makes it a schedule of the program's own code, of this release; for
    /// [`Task::schedule`](crate::Task::schedule). Of two programs with different schedules of one
    /// name, the later release wins, as semver compares them. `#[optimus::cron]` takes the version
    /// of the package that contains the function.
    pub fn release(mut self, release: impl Into<String>) -> Self {
        self.release = Some(release.into());
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks everything that can be wrong.
    ///
    /// # Errors
    /// [`Error::is_invalid`].
    #[doc(hidden)]
    pub fn check(self) -> Result<CheckedSchedule, Error> {
        let name = self.name.clone();
        self.checked()
            .map_err(|problem| Error::invalid(format!("the schedule {name:?}: {problem}")))
    }

    fn checked(self) -> Result<CheckedSchedule, String> {
        validate_name(&self.name).map_err(|problem| problem.to_string())?;
        let zone = TimeZone::parse(&self.zone)?;
        let pace = match self.pace {
            Wanted::Cron(text) => Pace::Cron(CronExpression::parse(&text)?, text, zone),
            Wanted::Every(_) if zone != TimeZone::Utc => {
                return Err("every(…) has no local times, so tz(…) has no meaning".to_owned());
            }
            Wanted::Every(time) if !(EVERY_MIN..=DURATION_MAX).contains(&time) => {
                return Err("every(…) takes a second to 1,800 days".to_owned());
            }
            Wanted::Every(time) => Pace::Every(millis(time)),
        };
        if self.jitter > JITTER_MAX {
            return Err("a jitter is at most a day".to_owned());
        }
        let (missed, overlap) = (self.missed, self.overlap);
        let timing = Timing { pace, missed, overlap, jitter_ms: millis(self.jitter) };
        if overlap == Overlap::Skip {
            refuse_lost_instants(&timing)?;
        }
        let call = self.call.ok_or("it has no call: name the task with .call(…)")?;
        let submission = scheduled(&self.name, call.map_err(|Fault(why)| why)?, overlap)?;
        // The client checks the size, which its settings limit.
        let any_size = SizeLimit::new(usize::MAX, "");
        submission.check(any_size, platform::now_ms()).map_err(|problem| problem.to_string())?;
        Ok(CheckedSchedule { name: self.name, timing, release: self.release, submission })
    }
}

/// Refuses schedules most of whose instants would be left out, because the task of an earlier one
/// has not ended.
fn refuse_lost_instants(timing: &Timing) -> Result<(), String> {
    if timing.missed == Missed::All {
        return Err(
            "missed = all submits many tasks at once, of which overlap = skip (the default) \
                    leaves out all but one; set the overlap to queue or all"
                .to_owned(),
        );
    }
    let shortest_ms = timing.shortest_ms().unwrap_or(u64::MAX);
    if timing.jitter_ms >= shortest_ms {
        let (jitter, shortest) =
            (Duration::from_millis(timing.jitter_ms), Duration::from_millis(shortest_ms));
        return Err(format!(
            "its jitter of {jitter:?} is not shorter than the {shortest:?} between two instants, \
             so overlap = skip (the default) leaves out instants whose task before still waits; \
             take a shorter jitter, or another overlap"
        ));
    }
    Ok(())
}

/// Refuses calls that can't be submitted more than once.
fn scheduled(name: &str, mut call: Submission, overlap: Overlap) -> Result<Submission, String> {
    let problem = match () {
        () if call.may_exist => "its call has an id, and each of its tasks needs one of its own",
        () if call.after.is_some() => "its call waits for other tasks, which only end once",
        () if call.due != Due::Now => {
            "its call has a due time; the schedule decides when it is due"
        }
        () if overlap == Overlap::Queue && call.lane.is_some() => {
            "its call has a lane already, so overlap = queue has no meaning; remove one of them"
        }
        () if overlap == Overlap::Queue && call.gather.is_some() => {
            "its call is gathered, so it can't queue; use another overlap"
        }
        () => "",
    };
    if !problem.is_empty() {
        return Err(problem.to_owned());
    }
    if overlap == Overlap::Queue {
        let key = format!("schedule:{name}");
        call.lane =
            Some(Lane { key, width: std::num::NonZeroU16::MIN, on_failure: LaneFailure::Skip });
    }
    Ok(call)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
