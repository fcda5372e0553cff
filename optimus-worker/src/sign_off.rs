//! The last words of a worker: what it still holds is given back, and its registration ends.

use std::time::Duration;

use optimus_core::{
    Lease,
    broker::{BATCH_MAX, Broker, BrokerError, Give, Release},
};

use crate::{queues::Served, shared::Shared};

const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Signs off from every queue. What can't be given back now is left to the reaper.
pub(crate) async fn leave(shared: &Shared) {
    let broker = shared.broker.within(CONNECT_WITHIN);
    for queue in &shared.queues {
        if let Err(problem) = leave_queue(&broker, queue, shared.config.lease).await {
            tracing::warn!(queue = %queue.name, %problem, "could not sign off");
        }
    }
}

async fn leave_queue(broker: &Broker, queue: &Served, lease: Duration) -> Result<(), BrokerError> {
    let worker = queue.worker();
    if broker.leave(&queue.name, &worker).await? == 0 {
        return Ok(());
    }
    // Nothing runs any more: these are claims whose answers never came in.
    let held = broker.renew(&queue.name, &worker, lease).await?.held;
    tracing::warn!(queue = %queue.name, held = held.len(), "giving back what was never heard of");
    let give = |(id, token)| Release {
        lease: Lease { id, worker: worker.clone(), token },
        give: Give::Head,
    };
    let releases: Vec<Release> = held.into_iter().map(give).collect();
    for batch in releases.chunks(BATCH_MAX) {
        broker.report(broker.release_call(&queue.name, &worker, batch)).await?;
    }
    broker.leave(&queue.name, &worker).await.map(drop)
}
