//! The stored form of a task: [`TaskRecord`], written from a [`Submission`].
//!
//! A record is a JSON header that only has what differs from [`TaskOptions::DEFAULT`], a newline,
//! and the user's bytes. If a task can expire, the submit script puts eight characters of base 36
//! before it: the ms at which Redis accepted the task. A record does not change after the submit.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    broker::SizeLimit,
    headers::{self, Headers},
    id::{TaskId, validate_name},
    options::{Due, OnLost, TaskOptions},
    retry::Backoff,
};

/// The newest record version that this code reads.
pub const RECORD_VERSION: u32 = 1;

/// The lowest version that can run the records that this code writes. A field that older workers
/// must not ignore gets the next version, only in the records that have the field.
const LEAST_VERSION: u32 = 1;

/// Payloads above this size are stored apart from the record, so that claims do not pass them
/// through Lua. A plain read fetches them.
pub const BLOB_BYTES_MIN: usize = 16 * 1024;

/// The longest biz id: it is part of a key.
const BIZ_ID_BYTES_MAX: usize = 512;

/// How far the time of a given id may differ from the client's clock and still count as the time of
/// submit.
const MADE_NOW_MS: u64 = 1_000;

/// How far ahead of the client's clock the time of a given id may be.
const AHEAD_MAX_MS: u64 = 24 * 60 * 60 * 1000;

/// The length of a stamp.
const STAMP_BYTES: usize = 8;

/// A checked call with encoded arguments, as a client sends it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub(crate) id: TaskId,
    /// The id was given. A task with this id may be stored already; then nothing is added.
    pub(crate) may_exist: bool,
    pub(crate) task: Cow<'static, str>,
    pub(crate) options: TaskOptions,
    pub(crate) biz_id: Option<String>,
    pub(crate) due: Due,
    pub(crate) headers: Headers,
    pub(crate) payload: Vec<u8>,
}

impl Submission {
    /// The id of the task, unless its biz id is taken.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// The task's name.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// All headers, by name.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// Adds a header, and replaces an earlier one of the same name, as
    /// [`Call::header`](crate::Call::header) does.
    pub fn set_header(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.headers.insert(name.into(), value.into());
    }

    /// The bytes that it adds to a request.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len() + headers::bytes(&self.headers)
    }

    /// Replaces its id by a new one in the same queue; for tests.
    #[doc(hidden)]
    pub fn with_id(self, id: TaskId) -> Self {
        debug_assert_eq!(self.id.queue(), id.queue(), "the id is of the same queue");
        Self { id, ..self }
    }

    /// Whether the time in its id is that of its submit; `here_ms` is the client's clock. An id
    /// that we made was made for this call; a given one may have another time, or none.
    pub(crate) fn id_has_submit_time(&self, here_ms: u64) -> bool {
        !self.may_exist || self.id.made_ms().abs_diff(here_ms) <= MADE_NOW_MS
    }

    /// Refuses what can't be stored, according to this clock of the client.
    pub(crate) fn check(&self, payload_limit: SizeLimit, here_ms: u64) -> Result<(), Error> {
        // After a purge of this task, a later success of the queue could not be distinguished from
        // it.
        if self.may_exist && self.id.made_ms() > here_ms.saturating_add(AHEAD_MAX_MS) {
            return Err(Error::invalid(format!(
                "task {:?}: the id {} is a version 7 uuid with a time more than a day ahead of \
                 this machine's clock; make it with TaskId::new, or take a uuid of version 4 or 5",
                self.task, self.id
            )));
        }
        if let Err(problem) = validate_name(&self.task) {
            return Err(Error::invalid(format!("the task's name: {problem}")));
        }
        if self.payload.len() > payload_limit.bytes() {
            return Err(Error::too_large(&self.task, self.payload.len(), payload_limit));
        }
        headers::check(&self.headers, &self.task)?;
        match &self.biz_id {
            Some(id) if id.is_empty() || id.len() > BIZ_ID_BYTES_MAX => Err(Error::invalid(
                format!("task {:?}: a biz id takes 1 to {BIZ_ID_BYTES_MAX} bytes", self.task),
            )),
            _ => Ok(()),
        }
    }

    /// The record as it is stored, for tests.
    #[doc(hidden)]
    pub fn stored(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Writes the header, its newline, and the payload unless that goes to `blobs`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        serde_json::to_writer(&mut *bytes, &Header::of(self)).expect("a header of plain fields");
        bytes.push(b'\n');
        if self.blob().is_none() {
            bytes.extend_from_slice(&self.payload);
        }
    }

    /// The payload, if it is stored apart from the record.
    pub(crate) fn blob(&self) -> Option<&[u8]> {
        (self.payload.len() > BLOB_BYTES_MIN).then_some(&self.payload)
    }
}

/// A stored task that was read from Redis.
#[derive(Clone)]
pub struct TaskRecord {
    /// The task's name.
    pub task: String,
    /// When Redis accepted it, in ms since the Unix epoch by Redis' clock. Only stored with
    /// `expires_in`.
    pub accepted_ms: Option<u64>,
    /// How long one attempt may run.
    pub timeout: Duration,
    /// How many attempts may follow the first failed one.
    pub max_retry: u32,
    /// The wait before each retry; `None` means the definition's own function.
    pub backoff: Option<Backoff>,
    /// The biz id, if it has one.
    pub biz_id: Option<String>,
    /// How long the biz id stays taken.
    pub biz_window: Option<Duration>,
    /// How long a result is kept.
    pub result_ttl: Duration,
    /// If it has not started within this time of its submit or requeue, it is marked Dead.
    pub expires_in: Option<Duration>,
    /// What happens to it when its worker is lost.
    pub on_lost: OnLost,
    /// How many lost workers mark it Dead.
    pub max_losses: u32,
    /// The priority of its submit.
    pub priority: i8,
    /// The headers of its submit, by name.
    pub headers: BTreeMap<String, String>,
    /// The arguments; empty if `has_blob` and not fetched yet.
    pub payload: Vec<u8>,
    /// Whether the arguments are stored apart from the record.
    pub has_blob: bool,
}

/// Why stored bytes can't be used as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Newer code has written it.
    #[error(
        "the record has version {0}, and this worker knows {RECORD_VERSION} at most; upgrade it"
    )]
    Newer(u32),
    /// Another program has written it, or it is damaged.
    #[error("the record is damaged: {0}")]
    Damaged(String),
}

impl TaskRecord {
    /// Reads a stored record.
    ///
    /// # Errors
    /// [`RecordError`] shows whether newer code could read it.
    pub fn decode(mut stored: Vec<u8>) -> Result<Self, RecordError> {
        let damaged = |what: &str| RecordError::Damaged(what.to_owned());
        let (accepted_ms, start) = if stored.starts_with(b"{") {
            (None, 0)
        } else {
            let stamp = stored.get(..STAMP_BYTES).ok_or_else(|| damaged("it is too short"))?;
            (Some(parse_stamp(stamp).ok_or_else(|| damaged("no stamp"))?), STAMP_BYTES)
        };
        let end = stored.iter().position(|b| *b == b'\n').filter(|end| *end >= start);
        let end = end.ok_or_else(|| damaged("no header"))?;
        let mut record = read_header(&stored[start..end])?;
        record.accepted_ms = accepted_ms;
        stored.drain(..=end);
        record.payload = stored;
        Ok(record)
    }
}

/// Reads the header of a record.
fn read_header(header: &[u8]) -> Result<TaskRecord, RecordError> {
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

/// Reads eight characters of base 36.
fn parse_stamp(stamp: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(stamp).ok()?;
    (text.len() == STAMP_BYTES).then(|| u64::from_str_radix(text, 36).ok())?
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
#[derive(Serialize, Deserialize)]
struct Header<'a> {
    #[serde(default = "one", skip_serializing_if = "is_one")]
    v: u32,
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
    #[serde(rename = "h", default, skip_serializing_if = "has_none")]
    headers: Cow<'a, Headers>,
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    blob: bool,
}

fn has_none(headers: &Headers) -> bool {
    headers.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(v: &u32) -> bool {
    *v == 1
}

/// A duration in stored form. Fractions of a millisecond round up, since zero has another meaning.
pub(crate) fn millis(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(MILLIS_MAX).min(MILLIS_MAX)
}

/// 285,000 years: the largest whole number that Lua represents exactly.
const MILLIS_MAX: u64 = (1 << 53) - 1;

impl<'a> Header<'a> {
    fn of(submission: &'a Submission) -> Self {
        let (options, default) = (&submission.options, TaskOptions::DEFAULT);
        Self {
            v: LEAST_VERSION,
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
            headers: Cow::Borrowed(&submission.headers),
            blob: submission.blob().is_some(),
        }
    }

    fn into_record(self) -> Result<TaskRecord, RecordError> {
        let default = TaskOptions::DEFAULT;
        Ok(TaskRecord {
            task: self.t.into_owned(),
            accepted_ms: None,
            timeout: self.timeout_ms.map_or(default.timeout, Duration::from_millis),
            max_retry: self.max_retry.unwrap_or(default.max_retry),
            backoff: read_backoff(self.backoff.as_deref())?,
            biz_id: self.biz_id.map(Cow::into_owned),
            biz_window: self.biz_window_ms.map(Duration::from_millis),
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

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
