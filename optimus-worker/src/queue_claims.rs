//! The claims of one served queue: [`QueueClaims`].

use crate::{claim_request::ClaimRequest, poll_schedule::Polls};

/// The claims of one served queue.
#[derive(Debug, Default)]
pub(crate) struct QueueClaims {
    pub(crate) seq: u64,
    /// A claim that was not answered. It is sent again under its number.
    pub(crate) unanswered: Option<ClaimRequest>,
    /// The last claim that Redis has answered.
    pub(crate) answered_seq: u64,
    pub(crate) polls: Polls,
    /// Whether the last claim left work in the queue.
    pub(crate) has_more: bool,
    /// Claims that are not answered yet.
    pub(crate) under_way: usize,
}

impl QueueClaims {
    /// Returns the last claim up to which all claims are answered, or will never be answered. If
    /// such a claim granted a task that this worker does not know, the heartbeat gives the task
    /// back.
    pub(crate) fn received_seq(&self) -> u64 {
        self.unanswered.as_ref().map_or(self.answered_seq, |request| request.seq - 1)
    }

    /// Returns whether the last claim left work in the queue, and no claim is to be sent again.
    pub(crate) fn knows_of_work(&self) -> bool {
        self.has_more && self.unanswered.is_none()
    }
}
