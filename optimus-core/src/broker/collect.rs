//! `collect`: how a run gets the tasks that run together.

use super::{Broker, BrokerError, Claimed, Grant, Refusal, scripts};
use crate::lease::{Lease, Token};

/// The answer to a collect.
#[derive(Debug)]
pub struct Collected {
    /// The token of these tasks.
    pub token: Token,
    /// Redis' clock at the time of the collect, in ms.
    pub now_ms: u64,
    /// The tasks.
    pub grants: Vec<Grant>,
    /// Whether the run must collect again, because it takes more than one call returns.
    pub more: bool,
}

impl Broker {
    /// Takes up to `want` of the tasks that run together with the task of this lease, but no more
    /// than one call returns. With 0 the task no longer leads, and the others continue without it.
    /// `None`: the worker no longer holds it.
    pub async fn collect(
        &self,
        leader: &Lease,
        want: usize,
    ) -> Result<Option<Collected>, BrokerError> {
        let queue = leader.id.queue();
        let call = self
            .call(&scripts::COLLECT, queue, leader.worker.as_str())
            .arg(leader.id.stored())
            .arg(leader.token)
            .arg(want);
        let reply = match self.run(call).await {
            Err(BrokerError::Refused(Refusal::Stale, _)) => return Ok(None),
            reply => reply?,
        };
        let Claimed { token, now_ms, grants, more, .. } = Self::read_claim(queue, reply)?;
        Ok(Some(Collected { token, now_ms, grants, more }))
    }
}
