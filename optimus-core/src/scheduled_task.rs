//! The call of a schedule in its stored form: [`ScheduledTask`].

use crate::{
    record::{RecordError, TaskRecord},
    record_json::version_in,
    submission::Submission,
    tick::Tick,
};

/// The record of a schedule's tasks, without their instants.
#[derive(Clone)]
pub struct ScheduledTask {
    pub(crate) record: Vec<u8>,
    /// The payload, if it is stored apart from the record.
    pub(crate) blob: Vec<u8>,
    /// What the record says.
    pub(crate) facts: TaskRecord,
    /// The lowest version of scripts that may change a queue with such a task.
    pub(crate) version: u32,
}

impl ScheduledTask {
    /// Encodes a call.
    pub(crate) fn of(submission: &Submission) -> (Vec<u8>, Vec<u8>) {
        let mut record = Vec::new();
        submission.encode(&mut record);
        (record, submission.blob().map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// Reads the stored form.
    pub(crate) fn read(record: Vec<u8>, blob: Vec<u8>) -> Result<Self, RecordError> {
        let facts = TaskRecord::decode(record.clone())?;
        let version = version_in(&record[..header_end(&record)]);
        Ok(Self { record, blob, facts, version })
    }

    /// Returns the record of the task of one instant. The header is kept as it is, because a newer
    /// program may have written it.
    pub(crate) fn record_at(&self, tick: &Tick) -> Vec<u8> {
        let end = header_end(&self.record);
        let (header, payload) = self.record.split_at(end);
        let text = serde_json::to_string(&tick.stored()).expect("a text");
        let header = header.strip_suffix(b"}").unwrap_or(header);
        [header, br#","s":"#, text.as_bytes(), b"}", payload].concat()
    }
}

fn header_end(record: &[u8]) -> usize {
    record.iter().position(|byte| *byte == b'\n').unwrap_or(record.len())
}
