//! Ends the worker's registration, and gives back the tasks that it still holds: [`leave`].

use std::time::Duration;

use futures_util::future::join_all;
use optimus_core::{
    Lease, OnLost,
    broker::{BATCH_MAX, Broker, BrokerError, Give, Release},
    log_event,
};

use crate::{attempts::Attempt, outcome_log::millis, served_queue::Served, shared::Shared};

const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// The time limit for all queues together. It is short because a supervisor waits.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Leaves all queues at once. The reaper of another worker takes back the tasks that can't be given
/// back now.
pub(crate) async fn leave(shared: &Shared) {
    let broker = shared.maintenance.within(CONNECT_WITHIN);
    let leaving = shared.queues.iter().map(|queue| leave_queues(shared, &broker, queue));
    if tokio::time::timeout(LEAVE_WITHIN, join_all(leaving)).await.is_err() {
        log_event!(
            shared.log,
            WARN,
            within_ms = millis(LEAVE_WITHIN),
            "could not leave every queue in time; the leases there end by themselves"
        );
    }
}

async fn leave_queues(shared: &Shared, broker: &Broker, queue: &Served) {
    if let Err(problem) = leave_queue(shared, broker, queue).await {
        let name = queue.name.clone();
        let text = "could not leave the queue; the lease there ends by itself";
        log_event!(shared.log, WARN, queue = %name, error = %problem, "{text}");
    }
}

async fn leave_queue(shared: &Shared, broker: &Broker, queue: &Served) -> Result<(), BrokerError> {
    let (worker, lease) = (queue.worker(), shared.config.lease);
    if broker.leave(&queue.name, &worker).await? == 0 {
        return Ok(());
    }
    let held = broker.renew(&queue.name, &worker, lease).await?.held;
    let leases = held.into_iter().map(|(id, token)| Lease { id, worker: worker.clone(), token });
    // Otherwise a running task would start elsewhere while it still runs here, and one that may
    // start only once would start again, because Redis has not taken its report.
    let stays = |attempt: &Attempt| !attempt.is_settled() || attempt.facts.on_lost == OnLost::Dead;
    let (mut kept, mut releases) = (0, Vec::new());
    for lease in leases {
        match shared.attempts.of(&lease) {
            Some(attempt) if stays(&attempt) => kept += 1,
            Some(_) => releases.push(Release { lease, give: Give::Interrupted }),
            None => releases.push(Release { lease, give: Give::Head }),
        }
    }
    let (name, given_back, kept_here) = (queue.name.clone(), releases.len(), kept);
    log_event!(
        shared.log,
        WARN,
        queue = %name,
        given_back,
        kept = kept_here,
        "this worker held tasks when it left: it gave back those that do not run here and may \
         start again; the others stay until the lease is over"
    );
    for batch in releases.chunks(BATCH_MAX) {
        broker.report(broker.release_call(&queue.name, &worker, batch)).await?;
    }
    if kept == 0 {
        broker.leave(&queue.name, &worker).await?;
    }
    Ok(())
}
