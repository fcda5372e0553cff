//! One claim, from its sending to its answer: [`ClaimRequest`].

use optimus_core::WorkerId;
use tokio::time::Instant;

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRequest {
    pub(crate) queue: usize,
    /// The id that the worker had when it was sent.
    pub(crate) worker: WorkerId,
    pub(crate) seq: u64,
    pub(crate) want: usize,
    /// The queue's number of hints when it was sent.
    pub(crate) hints: u64,
    pub(crate) mode: Mode,
    pub(crate) sent_at: Instant,
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A share of the idle slots.
    Share,
    /// One task, to run alone for a time.
    Alone,
    /// One task, which ends the time alone of another: it removes that task's mark.
    EndAlone,
}

impl ClaimRequest {
    /// How many of its tasks count for the queue's share.
    pub(crate) fn charged(&self) -> usize {
        if self.mode == Mode::Share { self.want } else { 0 }
    }
}
