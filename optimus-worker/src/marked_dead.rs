//! Tasks that die without an attempt. They are kept until Redis has answered their reports:
//! [`MarkedDead`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use optimus_core::{Lease, TaskId};

/// The logged facts of such a task.
#[derive(Debug)]
pub(crate) struct Marked {
    /// The name of the task, if it can be read.
    pub(crate) task: Option<String>,
    /// The number of the attempt that the task does not get.
    pub(crate) attempt: u32,
}

/// The tasks by task and fence, like attempts.
#[derive(Debug, Default)]
pub(crate) struct MarkedDead(Mutex<HashMap<(TaskId, u64), Marked>>);

impl MarkedDead {
    fn table(&self) -> MutexGuard<'_, HashMap<(TaskId, u64), Marked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. This must happen before the reporter holds its report.
    pub(crate) fn insert(&self, lease: &Lease, marked: Marked) {
        self.table().insert((lease.id.clone(), lease.token.fence), marked);
    }

    pub(crate) fn remove(&self, lease: &Lease) -> Option<Marked> {
        let mut table = self.table();
        // Most batches contain only attempts.
        if table.is_empty() { None } else { table.remove(&(lease.id.clone(), lease.token.fence)) }
    }

    /// Returns whether the report of this task is held.
    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.table().contains_key(&(id.clone(), fence))
    }

    pub(crate) fn take_all(&self) -> Vec<(TaskId, Marked)> {
        self.table().drain().map(|((id, _), marked)| (id, marked)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, time::Duration};

    use optimus_core::{
        Task,
        broker::{BrokerError, Claimed},
    };
    use optimus_testkit::eventually;

    use super::*;
    use crate::{
        prepare::{Claim, prepare},
        reconcile::{befores, reconcile},
        reporter::take_in_reports,
        tally::Counts,
        test_worker::{Nothing, idle_worker},
    };

    #[tokio::test]
    async fn a_task_without_an_attempt_is_dead_once_redis_has_taken_its_report() {
        let (client, shared) = idle_worker("marked-dead").await;
        client.submit(Nothing {}.call()).await.unwrap();
        let (queue, broker) = (&shared.queues[0], &shared.broker);
        let claimed = broker.claim(&queue.name, &queue.worker(), 1, 1).await.unwrap();
        let Claimed { token, now_ms, mut grants, .. } = claimed;
        queue.set_received_seq(token.seq);
        let grant = grants.remove(0);
        let claim = Claim {
            lease: Lease { id: grant.id, worker: queue.worker(), token },
            record: b"not a record".to_vec(),
            tries: grant.tries,
            was_tried: grant.was_tried,
            start_by: grant.start_by,
            now_ms,
            alone: false,
        };
        assert!(prepare(&shared, claim, shared.slots.take(0).unwrap()).is_none());

        let rejected = BrokerError::Rejected("WRONGTYPE".into());
        let batches = shared.reporter.take(1);
        take_in_reports(&shared, batches, &mut iter::once(Err(rejected)));
        assert!(shared.tally.take().is_empty(), "Redis has not accepted the report");
        let before = befores(&shared).remove(0);
        let lease = shared.config.lease;
        let renewed = broker.renew(&queue.name, &queue.worker(), lease).await.unwrap();
        reconcile(&shared, &before, &renewed);
        assert_eq!(shared.reporter.len(), 1, "the heartbeat does not give the task back");

        let has_waited = async || shared.reporter.ready() > 0;
        eventually("the report may be sent again", Duration::from_secs(20), has_waited).await;
        let batches = shared.reporter.take(1);
        let calls = batches.iter().map(|batch| batch.call(broker)).collect();
        let mut answers = broker.run_all(calls).await.into_iter();
        assert!(take_in_reports(&shared, batches, &mut answers));
        assert_eq!(shared.tally.take(), Counts { dead: 1, ..Counts::default() });
        assert!(shared.marked_dead.take_all().is_empty());
    }
}
