//! A stored task that was read from Redis: [`TaskRecord`].
//!
//! A record is a JSON header ([`record_json`](crate::record_json)), a newline, and the user's
//! bytes. If a task can expire, the submit script puts eight characters of base 36 before the
//! header: the ms at which Redis accepted the task. A record does not change after the submit.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use crate::{
    after::After, flow::ALL_MEMBERS, gather::Gather, group::Member, lane::Lane, limit::TaskLimit,
    options::OnLost, record_json::read_header, retry::Backoff, tick::Tick,
};

/// The newest record version that this code reads.
pub const RECORD_VERSION: u32 = 6;

/// The length of a stamp.
const STAMP_BYTES: usize = 8;

/// A stored task that was read from Redis.
#[derive(Clone)]
pub struct TaskRecord {
    /// The task's name.
    pub task: String,
    /// When Redis accepted the task, in ms since the Unix epoch by Redis' clock. This time is only
    /// stored with `expires_in`, and if the id has no time.
    pub accepted_ms: Option<u64>,
    /// How long one attempt may run.
    pub timeout: Duration,
    /// How many attempts may follow the first failed one.
    pub max_retry: u32,
    /// The wait before each retry; `None` means the definition's own function.
    pub backoff: Option<Backoff>,
    /// The biz id of the task, if it has one.
    pub biz_id: Option<String>,
    /// How long the biz id stays taken.
    pub biz_window: Option<Duration>,
    /// The lane, if it is in one.
    pub lane: Option<Lane>,
    /// With which tasks it runs together.
    pub gather: Option<Gather>,
    /// What it waits for before it may start.
    pub after: Option<After>,
    /// The group that counts it, if it is a member of one.
    pub member: Option<Member>,
    /// The instant of the schedule that has submitted it.
    pub tick: Option<Box<Tick>>,
    /// How long its outcome is remembered for the tasks that wait for it.
    pub outcome_ttl: Option<Duration>,
    /// The limits that it passes before it starts, the innermost first.
    pub limits: Vec<TaskLimit>,
    /// How much of a rate it uses.
    pub cost: u32,
    /// How long a result is kept.
    pub result_ttl: Duration,
    /// The time from the submit or a requeue within which the task must start; otherwise it is
    /// marked Dead.
    pub expires_in: Option<Duration>,
    /// What happens to the task when its worker is lost.
    pub on_lost: OnLost,
    /// The number of lost workers after which the task is marked Dead.
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
    /// Newer code has written the record.
    #[error(
        "the record has version {0}, and this worker knows {RECORD_VERSION} at most; upgrade it"
    )]
    Newer(u32),
    /// Another program has written the bytes, or they are damaged.
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

    /// Returns the arguments as JSON. A step of a flow that takes the result of the step before it
    /// has no whole arguments until that has succeeded: a text stands for the result, as
    /// [`waits_for_result`](Self::waits_for_result) says.
    pub fn arguments(&self) -> Cow<'_, [u8]> {
        let Some(suffix) = self.missing() else { return Cow::Borrowed(&self.payload) };
        let (known, words, suffix) = match self.payload.strip_suffix(ALL_MEMBERS.as_bytes()) {
            // Its own bracket goes with the mark.
            Some(known) => (
                known,
                "(the results of the group before)",
                suffix.strip_prefix('}').unwrap_or(suffix),
            ),
            None => (&*self.payload, "(the result of the step before)", suffix),
        };
        Cow::Owned([known, format!("\"{words}\"{suffix}").as_bytes()].concat())
    }

    /// Returns whether the result of the step before is still missing in the arguments.
    pub fn waits_for_result(&self) -> bool {
        self.missing().is_some()
    }

    /// Returns what follows the result that is still missing.
    fn missing(&self) -> Option<&str> {
        let input = self.after.as_ref()?.input.as_ref()?;
        // Whole arguments do not end so.
        self.payload.ends_with(b":").then_some(&*input.suffix)
    }
}

/// Reads eight characters of base 36.
fn parse_stamp(stamp: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(stamp).ok()?;
    (text.len() == STAMP_BYTES).then(|| u64::from_str_radix(text, 36).ok())?
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
