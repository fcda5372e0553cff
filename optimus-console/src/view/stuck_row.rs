//! A process whose handlers keep it from work.

use optimus_core::ProcessDetails;
use serde::Serialize;
use utoipa::ToSchema;

use super::running;
use crate::access::{Identity, Payloads};

/// A process whose handlers block its runtime, or go on after their timeouts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StuckRow {
    id: String,
    host: String,
    pid: u32,
    /// For how long its handlers have blocked all threads of its runtime, at least.
    blocked_ms: Option<u64>,
    /// How many handlers go on after their timeouts, of those that are known: at most 32.
    late: usize,
    /// For how long the one that is latest has gone on.
    late_ms: Option<u64>,
}

/// Returns whether the handlers of a process keep it from work.
pub(crate) fn is_stuck(process: &ProcessDetails) -> bool {
    let doing = &process.doing;
    !process.is_lost
        && (doing.blocked_ms.is_some() || doing.running.iter().any(|task| task.late_ms.is_some()))
}

impl StuckRow {
    /// Returns what somebody sees of such a process; `None` if they see nothing that is wrong.
    pub(crate) fn of(process: &ProcessDetails, identity: &Identity) -> Option<Self> {
        if !identity.queues.take_one_of(&process.about.queues) {
            return None;
        }
        // The texts of their progress are not shown here.
        let seen = running(process, identity, Payloads::Redacted);
        let late: Vec<u64> = seen.filter_map(|task| task.late_ms).collect();
        let blocked_ms = process.doing.blocked_ms;
        (blocked_ms.is_some() || !late.is_empty()).then(|| Self {
            id: process.id.to_string(),
            host: process.about.host.clone(),
            pid: process.about.pid,
            blocked_ms,
            late: late.len(),
            late_ms: late.into_iter().max(),
        })
    }

    /// Rows are sorted by this: a process that starts no task comes before one that lacks slots.
    pub(crate) fn urgency(&self) -> (Option<u64>, Option<u64>) {
        (self.blocked_ms, self.late_ms)
    }
}
