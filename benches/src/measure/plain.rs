//! A plain task for the broker, for measurements without a client and a worker.

use std::time::Duration;

use anyhow::Context as _;
use optimus::{BoxError, Call, Context, Submit as _, Task, TaskOptions};
use optimus_core::broker::{Claimed, Completion};
use optimus_core::{Lease, QueueName, Submission, WorkerId};
use serde::{Deserialize, Serialize};

use crate::agent::protocol::PAYLOAD_BYTES;

const QUEUE: &str = "bench";

#[derive(Serialize, Deserialize)]
pub(super) struct Plain {
    text: String,
}

impl Task for Plain {
    const NAME: &'static str = "plain";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Returns the queue of all plain tasks.
pub(super) fn queue() -> anyhow::Result<QueueName> {
    QueueName::new(QUEUE).context("the name is valid")
}

/// Returns a call with the usual arguments.
pub(super) fn call() -> Call<Plain> {
    Plain { text: "x".repeat(PAYLOAD_BYTES - r#"{"text":""}"#.len()) }.call()
}

/// Returns a task with the usual arguments.
pub(super) fn submission() -> anyhow::Result<Submission> {
    Ok(call().into_submission()?)
}

/// Returns the leases of a claim.
pub(super) fn leases(claim: &Claimed, worker: &WorkerId) -> impl Iterator<Item = Lease> {
    claim.grants.iter().map(|grant| Lease {
        id: grant.id.clone(),
        worker: worker.clone(),
        token: claim.token,
    })
}

/// Returns the report of a task that ran for a millisecond.
pub(super) fn completion(lease: Lease, now_ms: u64) -> Completion {
    Completion {
        lane: None,
        outcome_ttl: None,
        member: None,
        lease,
        task: Plain::NAME,
        attempt: 1,
        took: Duration::from_millis(1),
        ended_ms: now_ms + 1,
        result: None,
        has_sides: false,
        biz_id: None,
    }
}
