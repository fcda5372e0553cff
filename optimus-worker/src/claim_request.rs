//! One claim, from the time it is sent until it is answered: [`ClaimRequest`].

use optimus_core::WorkerId;
use tokio::time::Instant;

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRequest {
    pub(crate) queue: usize,
    /// The worker's id at the time of sending.
    pub(crate) worker: WorkerId,
    pub(crate) seq: u64,
    pub(crate) want: usize,
    /// The queue's number of hints at the time of sending.
    pub(crate) hints: u64,
    pub(crate) mode: Mode,
    pub(crate) sent_at: Instant,
}

/// The purpose of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Claims a share of the idle slots.
    Share,
    /// Claims one task that runs alone for a time.
    Alone,
    /// Claims one task, and removes the mark of a task that has run alone for long enough. That
    /// task then no longer runs alone.
    EndAlone,
}

impl ClaimRequest {
    /// Returns how many of its tasks count for the queue's share.
    pub(crate) fn charged(&self) -> usize {
        if self.mode == Mode::Share { self.want } else { 0 }
    }
}
