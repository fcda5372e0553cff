//! One claim, from its sending to its answer: [`Ask`].

use optimus_core::WorkerId;
use tokio::time::Instant;

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) queue: usize,
    /// Under the id that the worker had when it was sent.
    pub(crate) worker: WorkerId,
    pub(crate) seq: u64,
    pub(crate) want: usize,
    /// Of the queue, when it was sent.
    pub(crate) hints: u64,
    pub(crate) mode: Mode,
    pub(crate) sent_at: Instant,
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A share of the idle slots.
    Share,
    /// One task, while nothing else runs, and nothing will for a time.
    Alone,
    /// To take the mark from one that runs alone, before others run beside it.
    Company,
}

impl Ask {
    /// How many tasks of it count for the queue's share.
    pub(crate) fn charged(&self) -> usize {
        if self.mode == Mode::Share { self.want } else { 0 }
    }
}
