//! A checked call as a database stores it until it is sent to Redis:
//! [`Submission::to_bytes`] and [`Submission::from_bytes`].
//!
//! The bytes are a line of JSON with what a record has no place for, and then the record with all
//! arguments. So the format changes with that of records, and has no version of its own until a
//! later program adds to its first line what older ones must not ignore.

use std::time::Duration;

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::{
    after_options::AfterOptions,
    headers::Headers,
    id::TaskId,
    options::{Due, TaskOptions},
    record::{RecordError, TaskRecord},
    record_json::{Header, millis},
    retry::{BACKOFF_MAX, Backoff},
    submission::{Fields, Submission},
};

/// The newest version of the first line that this code reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct FirstLine {
    #[serde(default = "one", skip_serializing_if = "is_one")]
    v: u32,
    /// The delay from the time at which the call was made.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    in_ms: Option<u64>,
    /// The time at which it is due.
    #[serde(rename = "at", default, skip_serializing_if = "Option::is_none")]
    at_ms: Option<i64>,
    /// Whether its handler returns `()`.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    returns_nothing: bool,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(v: &u32) -> bool {
    *v == 1
}

#[derive(Deserialize)]
struct Version {
    #[serde(default = "one")]
    v: u32,
}

impl Submission {
    /// Returns how long its result is kept.
    #[doc(hidden)]
    pub fn result_ttl(&self) -> Duration {
        self.options.result_ttl
    }

    /// Returns the call as bytes, for a program that stores it and sends it later. The id is not a
    /// part of them.
    #[doc(hidden)]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (in_ms, at_ms) = match self.due {
            Due::Now => (None, None),
            Due::In(delay) => (Some(millis(delay)), None),
            Due::At(at) => (None, Some(at.timestamp_millis())),
        };
        let first = FirstLine { v: VERSION, in_ms, at_ms, returns_nothing: self.returns_nothing };
        let mut bytes = serde_json::to_vec(&first).expect("a line of plain fields");
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, &Header::of(self)).expect("a header of plain fields");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Returns what a handle needs to know of the call.
    #[doc(hidden)]
    pub fn without_arguments(&self) -> Self {
        let Fields { id, task, options, returns_nothing, .. } = &**self;
        Self::of(Fields {
            id: id.clone(),
            may_exist: false,
            task: task.clone(),
            returns_nothing: *returns_nothing,
            options: *options,
            biz_id: None,
            lane: None,
            gather: None,
            after: None,
            follows_step: false,
            member: None,
            trace: None,
            limits: Vec::new(),
            due: self.due,
            headers: Headers::new(),
            payload: Vec::new(),
        })
    }

    /// Reads a call that was stored `age` ago. A delay counts from that time. A task with this id
    /// may be stored in Redis already; then a submit adds nothing.
    ///
    /// # Errors
    /// [`RecordError`] shows whether newer code could read it.
    #[doc(hidden)]
    pub fn from_bytes(id: TaskId, stored: &[u8], age: Duration) -> Result<Self, RecordError> {
        let damaged = |what: &str| RecordError::Damaged(what.to_owned());
        let end = stored.iter().position(|byte| *byte == b'\n');
        let (first, record) = stored.split_at(end.ok_or_else(|| damaged("it has no first line"))?);
        let first = read_first(first)?;
        let record = TaskRecord::decode(record[1..].to_vec())?;
        let due = match (first.in_ms, first.at_ms) {
            (Some(ms), _) => Due::In(Duration::from_millis(ms).saturating_sub(age)),
            (None, Some(ms)) => {
                let at = DateTime::from_timestamp_millis(ms);
                Due::At(at.ok_or_else(|| damaged("its due time is no time"))?)
            }
            (None, None) => Due::Now,
        };
        Ok(Self::of(Fields {
            id,
            may_exist: true,
            options: options_of(&record),
            task: record.task.into(),
            returns_nothing: first.returns_nothing,
            biz_id: record.biz_id,
            lane: record.lane,
            gather: record.gather,
            member: record.member,
            trace: None,
            after: record.after,
            follows_step: false,
            limits: record.limits,
            due,
            headers: record.headers,
            payload: record.payload,
        }))
    }
}

fn read_first(line: &[u8]) -> Result<FirstLine, RecordError> {
    match serde_json::from_slice::<FirstLine>(line) {
        Ok(first) if first.v <= VERSION => Ok(first),
        Ok(newer) => Err(RecordError::Newer(newer.v)),
        // Newer code may have given a field another type.
        Err(problem) => Err(match serde_json::from_slice::<Version>(line) {
            Ok(Version { v }) if v > VERSION => RecordError::Newer(v),
            _ => RecordError::Damaged(problem.to_string()),
        }),
    }
}

/// Returns the options that a submit reads. The record has no others.
fn options_of(record: &TaskRecord) -> TaskOptions {
    TaskOptions {
        priority: record.priority,
        timeout: record.timeout,
        max_retry: record.max_retry,
        backoff: record.backoff.unwrap_or(OF_THE_DEFINITION),
        biz_window: record.biz_window,
        result_ttl: record.result_ttl,
        expires_in: record.expires_in,
        on_lost: record.on_lost,
        max_losses: record.max_losses,
        after: AfterOptions { outcome_ttl: record.outcome_ttl, ..AfterOptions::DEFAULT },
        cost: record.cost,
        ..TaskOptions::DEFAULT
    }
}

/// A function of the definition, which a record only mentions. Nothing calls this one.
const OF_THE_DEFINITION: Backoff = Backoff::Custom(|_, _| BACKOFF_MAX);

#[cfg(test)]
#[path = "stored_call_tests.rs"]
mod tests;
