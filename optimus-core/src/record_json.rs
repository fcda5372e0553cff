//! The header of a stored task as JSON: [`Header`], written from a [`Submission`] and read into a
//! [`TaskRecord`]. The header has only the values that differ from [`TaskOptions::DEFAULT`].

use std::{borrow::Cow, num::NonZeroU16, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    after::{After, Prerequisite, PrerequisiteFailure},
    gate::Gate,
    gather::Gather,
    group::Member,
    headers::Headers,
    lane::{Lane, LaneFailure},
    limit::{Limit, TaskLimit},
    options::{OnLost, TaskOptions},
    plain_header,
    rate::Rate,
    record::{RECORD_VERSION, RecordError, TaskRecord},
    retry::Backoff,
    submission::Submission,
    tick::Tick,
};

/// The lowest version that can run the records that this code writes. If older workers must not
/// ignore a new field, only the records with that field get the next version.
const LEAST_VERSION: u32 = 1;

/// The lowest version that can run the records of tasks with a lane: a worker that ignores the lane
/// would break its order.
const LANE_VERSION: u32 = 2;

/// The lowest version that can run the records of tasks with prerequisites, or whose outcome is
/// remembered: a worker that ignores the latter would not report the outcome.
const AFTER_VERSION: u32 = 4;

/// The lowest version that can run the records of members of a group, and of tasks that take a
/// result: a worker that ignores the group would not report the result to it.
const FLOW_VERSION: u32 = 5;

/// The lowest version that can run the records of tasks that run together: a worker that ignores
/// it would run each alone.
const GATHER_VERSION: u32 = 6;

/// The lowest version that can run the records of tasks with a limit: a worker that ignores the
/// limit would not give its permit back.
const LIMIT_VERSION: u32 = 3;

/// Reads the header of a record.
pub(crate) fn read_header(header: &[u8]) -> Result<TaskRecord, RecordError> {
    if let Some(name) = plain_header::only_name(header) {
        return Header { v: LEAST_VERSION, t: name.into(), ..Header::default() }.into_record();
    }
    match serde_json::from_slice::<Header<'_>>(header) {
        Ok(known) if known.v <= RECORD_VERSION => known.into_record(),
        Ok(newer) => Err(RecordError::Newer(newer.v)),
        // Newer code may have given a field another type.
        Err(problem) => Err(match serde_json::from_slice::<Version>(header) {
            Ok(Version { v }) if v > RECORD_VERSION => RecordError::Newer(v),
            _ => RecordError::Damaged(problem.to_string()),
        }),
    }
}

/// Returns the lowest version that can run a record with this header.
pub(crate) fn version_in(header: &[u8]) -> u32 {
    serde_json::from_slice(header).map_or(RECORD_VERSION, |Version { v }| v)
}

#[derive(Deserialize)]
struct Version {
    #[serde(default = "one")]
    v: u32,
}

fn one() -> u32 {
    1
}

/// Field names are short because every stored task has them. `lua/include/task_header.lua` reads
/// `t`, `z`, `w`, `e`, `l` and `m` on rare paths.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Header<'a> {
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) v: u32,
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(rename = "to", default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    max_retry: Option<u32>,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    backoff: Option<String>,
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    biz_id: Option<Cow<'a, str>>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    biz_window_ms: Option<u64>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    result_ttl_ms: Option<u64>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<u64>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    on_lost: Option<OnLost>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    max_losses: Option<u32>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    priority: Option<i8>,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    lane: Option<Cow<'a, str>>,
    #[serde(rename = "nw", default, skip_serializing_if = "Option::is_none")]
    lane_width: Option<NonZeroU16>,
    #[serde(rename = "nb", default, skip_serializing_if = "Option::is_none")]
    lane_blocks: Option<u8>,
    #[serde(rename = "ga", default, skip_serializing_if = "Option::is_none")]
    gather: Option<String>,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    prerequisites: Vec<String>,
    #[serde(rename = "ap", default, skip_serializing_if = "Option::is_none")]
    on_prerequisite_failure: Option<u8>,
    #[serde(rename = "au", default, skip_serializing_if = "Option::is_none")]
    give_up_after_ms: Option<u64>,
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    input_suffix: Option<String>,
    #[serde(rename = "gr", default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(rename = "gp", default, skip_serializing_if = "Option::is_none")]
    on_member_failure: Option<u8>,
    #[serde(rename = "rm", default, skip_serializing_if = "Option::is_none")]
    outcome_ttl_ms: Option<u64>,
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Cow<'a, str>>,
    #[serde(rename = "gc", default, skip_serializing_if = "Option::is_none")]
    cost: Option<u32>,
    /// [`ScheduledTask`](crate::scheduled_task::ScheduledTask) adds it to the stored header.
    #[serde(rename = "s", default, skip_serializing)]
    tick: Option<Cow<'a, str>>,
    #[serde(rename = "h", default, skip_serializing_if = "has_none")]
    headers: Cow<'a, Headers>,
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    blob: bool,
}

/// Writes `<interval of the rate in µs>:<burst>:<max working>:<gate>`; 0 is none.
pub(crate) fn write_limit(TaskLimit { gate, limit }: &TaskLimit) -> String {
    let interval_us = limit.rate.map_or(0, |rate| rate.interval_us());
    let burst = limit.rate.map_or(0, |_| limit.burst_limit());
    format!("{interval_us}:{burst}:{}:{}", limit.max_working.unwrap_or(0), gate.stored())
}

pub(crate) fn read_limit(stored: &str) -> Result<TaskLimit, RecordError> {
    let read = || {
        let mut parts = stored.splitn(4, ':');
        let rate = Rate::from_interval_us(parts.next()?.parse().ok()?);
        let (burst, max_working) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let limit = Limit {
            rate,
            burst: rate.map(|_| burst),
            max_working: (max_working > 0).then_some(max_working),
        };
        Some(TaskLimit { gate: Gate::from_stored(parts.next()?)?, limit })
    };
    read().ok_or_else(|| RecordError::Damaged(format!("the limit {stored:?} is not known")))
}

fn has_none(headers: &Headers) -> bool {
    headers.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(v: &u32) -> bool {
    *v == 1
}

/// Returns a duration in stored form. Fractions of a millisecond round up, since zero has another
/// meaning.
pub(crate) fn millis(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(MILLIS_MAX).min(MILLIS_MAX)
}

/// The largest whole number that Lua represents exactly: 285,000 years.
const MILLIS_MAX: u64 = (1 << 53) - 1;

impl<'a> Header<'a> {
    pub(crate) fn of(submission: &'a Submission) -> Self {
        let (options, default) = (&submission.options, TaskOptions::DEFAULT);
        let (lane, after) = (submission.lane.as_ref(), submission.after.as_ref());
        Self {
            v: version_of(submission),
            t: Cow::Borrowed(&submission.task),
            timeout_ms: (options.timeout != default.timeout).then(|| millis(options.timeout)),
            max_retry: (options.max_retry != default.max_retry).then_some(options.max_retry),
            backoff: write_backoff(options.backoff),
            biz_id: submission.biz_id.as_deref().map(Cow::Borrowed),
            biz_window_ms: options.biz_window.map(millis),
            result_ttl_ms: (options.result_ttl != default.result_ttl)
                .then(|| millis(options.result_ttl)),
            expires_in_ms: options.expires_in.map(millis),
            on_lost: (options.on_lost != default.on_lost).then_some(options.on_lost),
            max_losses: (options.max_losses != default.max_losses).then_some(options.max_losses),
            priority: (options.priority != default.priority).then_some(options.priority),
            lane: lane.map(|lane| Cow::Borrowed(&*lane.key)),
            lane_width: lane.map(|lane| lane.width).filter(|width| *width > NonZeroU16::MIN),
            lane_blocks: lane.and_then(|lane| (lane.on_failure == LaneFailure::Block).then_some(1)),
            gather: submission.gather.as_ref().map(Gather::stored),
            prerequisites: after.map_or_else(Vec::new, |after| {
                after.prerequisites.iter().map(Prerequisite::reference).collect()
            }),
            on_prerequisite_failure: after.and_then(|after| write_on_failure(after.on_failure)),
            give_up_after_ms: after.and_then(|after| after.give_up_after).map(millis),
            input_suffix: after
                .and_then(|after| after.input.as_ref())
                .map(|input| input.suffix.clone()),
            group: submission.member.as_ref().map(Member::stored),
            on_member_failure: submission
                .member
                .as_ref()
                .and_then(|member| write_on_failure(member.on_failure)),
            outcome_ttl_ms: options.after.outcome_ttl.map(millis),
            limits: submission.limits.iter().map(|limit| write_limit(limit).into()).collect(),
            cost: (options.cost != default.cost).then_some(options.cost),
            tick: None,
            headers: Cow::Borrowed(&submission.headers),
            blob: submission.blob().is_some(),
        }
    }

    fn into_record(self) -> Result<TaskRecord, RecordError> {
        let default = TaskOptions::DEFAULT;
        let on_failure = match self.lane_blocks {
            Some(1) => LaneFailure::Block,
            _ => LaneFailure::Skip,
        };
        let lane = self.lane.map(|key| Lane {
            key: key.into_owned(),
            width: self.lane_width.unwrap_or(NonZeroU16::MIN),
            on_failure,
        });
        let after = read_after(
            &self.prerequisites,
            self.on_prerequisite_failure,
            self.give_up_after_ms.map(Duration::from_millis),
            self.input_suffix,
        )?;
        let member = read_member(self.group.as_deref(), self.on_member_failure)?;
        Ok(TaskRecord {
            task: self.t.into_owned(),
            accepted_ms: None,
            timeout: self.timeout_ms.map_or(default.timeout, Duration::from_millis),
            max_retry: self.max_retry.unwrap_or(default.max_retry),
            backoff: read_backoff(self.backoff.as_deref())?,
            biz_id: self.biz_id.map(Cow::into_owned),
            biz_window: self.biz_window_ms.map(Duration::from_millis),
            lane,
            gather: read_gather(self.gather.as_deref())?,
            after,
            member,
            tick: read_tick(self.tick.as_deref())?,
            outcome_ttl: self.outcome_ttl_ms.map(Duration::from_millis),
            limits: self.limits.iter().map(|limit| read_limit(limit)).collect::<Result<_, _>>()?,
            cost: self.cost.unwrap_or(default.cost),
            result_ttl: self.result_ttl_ms.map_or(default.result_ttl, Duration::from_millis),
            expires_in: self.expires_in_ms.map(Duration::from_millis),
            on_lost: self.on_lost.unwrap_or(default.on_lost),
            max_losses: self.max_losses.unwrap_or(default.max_losses),
            priority: self.priority.unwrap_or(default.priority),
            headers: self.headers.into_owned(),
            payload: Vec::new(),
            has_blob: self.blob,
        })
    }
}

/// The lowest version that can run the record of the submission.
fn version_of(submission: &Submission) -> u32 {
    let takes_a_result = submission.after.as_ref().is_some_and(|after| after.input.is_some());
    if submission.gather.is_some() {
        GATHER_VERSION
    } else if takes_a_result || submission.member.is_some() {
        FLOW_VERSION
    } else if submission.after.is_some() || submission.options.after.outcome_ttl.is_some() {
        AFTER_VERSION
    } else if !submission.limits.is_empty() {
        LIMIT_VERSION
    } else if submission.lane.is_some() {
        LANE_VERSION
    } else {
        LEAST_VERSION
    }
}

fn write_on_failure(on_failure: PrerequisiteFailure) -> Option<u8> {
    match on_failure {
        PrerequisiteFailure::Wait => None,
        PrerequisiteFailure::Cancel => Some(1),
        PrerequisiteFailure::Run => Some(2),
    }
}

fn read_after(
    references: &[String],
    on_failure: Option<u8>,
    give_up_after: Option<Duration>,
    suffix: Option<String>,
) -> Result<Option<After>, RecordError> {
    if references.is_empty() {
        return Ok(None);
    }
    let read = |text: &String| {
        Prerequisite::from_reference(text)
            .ok_or_else(|| RecordError::Damaged(format!("the prerequisite {text:?} is not known")))
    };
    let prerequisites = references.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let on_failure = read_on_failure(on_failure);
    let after = After { on_failure, give_up_after, ..After::new(prerequisites) };
    Ok(Some(match suffix {
        Some(suffix) => after.taking(&suffix),
        None => after,
    }))
}

fn read_on_failure(on_failure: Option<u8>) -> PrerequisiteFailure {
    match on_failure {
        Some(1) => PrerequisiteFailure::Cancel,
        Some(2) => PrerequisiteFailure::Run,
        _ => PrerequisiteFailure::Wait,
    }
}

fn read_member(group: Option<&str>, on_failure: Option<u8>) -> Result<Option<Member>, RecordError> {
    let Some(text) = group else { return Ok(None) };
    let member = Member::from_stored(text, read_on_failure(on_failure));
    let unknown = || RecordError::Damaged(format!("the group {text:?} is not known"));
    member.map(Some).ok_or_else(unknown)
}

fn read_tick(stored: Option<&str>) -> Result<Option<Box<Tick>>, RecordError> {
    let Some(text) = stored else { return Ok(None) };
    let unknown = || RecordError::Damaged(format!("the instant {text:?} is not known"));
    Tick::from_stored(text).map(|tick| Some(Box::new(tick))).ok_or_else(unknown)
}

fn read_gather(stored: Option<&str>) -> Result<Option<Gather>, RecordError> {
    let Some(text) = stored else { return Ok(None) };
    let unknown = || RecordError::Damaged(format!("the gathering {text:?} is not known"));
    Gather::from_stored(text).map(Some).ok_or_else(unknown)
}

fn write_backoff(backoff: Backoff) -> Option<String> {
    Some(match backoff {
        Backoff::Sidekiq => return None,
        Backoff::Exponential { base, cap, jitter } => {
            format!("exponential:{}:{}:{jitter}", millis(base), millis(cap))
        }
        Backoff::Linear { base, cap, jitter } => {
            format!("linear:{}:{}:{jitter}", millis(base), millis(cap))
        }
        Backoff::Fixed { wait, jitter } => format!("fixed:{}:{jitter}", millis(wait)),
        Backoff::Custom(_) => "custom".into(),
    })
}

fn read_backoff(stored: Option<&str>) -> Result<Option<Backoff>, RecordError> {
    let Some(stored) = stored else { return Ok(Some(Backoff::Sidekiq)) };
    let damaged = || RecordError::Damaged(format!("the backoff {stored:?} is not known"));
    let ms = |text: &str| text.parse().map(Duration::from_millis).map_err(|_| damaged());
    let share = |text: &str| text.parse::<f64>().map_err(|_| damaged());
    let parts: Vec<&str> = stored.split(':').collect();
    Ok(Some(match *parts.as_slice() {
        ["custom"] => return Ok(None),
        ["exponential", base, cap, jitter] => {
            Backoff::Exponential { base: ms(base)?, cap: ms(cap)?, jitter: share(jitter)? }
        }
        ["linear", base, cap, jitter] => {
            Backoff::Linear { base: ms(base)?, cap: ms(cap)?, jitter: share(jitter)? }
        }
        ["fixed", wait, jitter] => Backoff::Fixed { wait: ms(wait)?, jitter: share(jitter)? },
        _ => return Err(damaged()),
    }))
}
