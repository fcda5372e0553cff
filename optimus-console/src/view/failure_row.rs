//! Dead tasks with the same cause.

use optimus_core::{Fingerprint, FingerprintRow, QueueName};
use serde::Serialize;
use utoipa::ToSchema;

use super::{at_ms, error_shown, kept};
use crate::access::Reader;

/// Dead tasks with the same cause.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FailureRow {
    pub(crate) queue: String,
    pub(crate) task: Option<String>,
    /// `null` for errors that no worker wrote, such as losses.
    pub(crate) fingerprint: Option<String>,
    pub(crate) reason: Option<String>,
    /// The first line of the error, with `#` instead of numbers, ids and quoted parts.
    pub(crate) outline: Option<String>,
    pub(crate) dead: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    /// The task that died last.
    pub(crate) sample: String,
    /// The error of that task.
    pub(crate) message: Option<String>,
}

impl FailureRow {
    pub(crate) fn of(queue: &QueueName, row: &FingerprintRow, reader: Reader<'_>) -> Self {
        let message = row.error.as_ref();
        let message = message.map(|error| error_shown(error, kept::ERROR, reader));
        Self {
            queue: queue.to_string(),
            task: row.task.clone(),
            fingerprint: row.fingerprint.map(|print| print.to_string()),
            reason: row.reason.map(|reason| reason.as_str().to_owned()),
            // The outline ends after 200 characters, so it is made of what may be seen.
            outline: message.as_deref().map(Fingerprint::outline),
            dead: row.dead,
            first_ms: at_ms(row.first),
            last_ms: at_ms(row.last),
            sample: row.sample.to_string(),
            message,
        }
    }
}
