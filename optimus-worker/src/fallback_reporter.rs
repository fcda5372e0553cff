//! Sends the reports that the claimer can't send because handlers block its runtime.
//!
//! Results may be large, so this role has a separate connection, and no heartbeat waits behind
//! results. The connection is made when there is a report to send.

use std::{sync::Arc, time::Duration};

use optimus_core::broker::Broker;

use crate::{reporter::take_in_reports, role::Role, shared::Shared};

const CHECK_EVERY: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_secs(1);
/// The wait after which a report is overdue. A claimer with a thread sends a report at once, unless
/// it waits for Redis.
const OVERDUE: Duration = Duration::from_millis(200);
const CALLS_MAX: usize = 8;
/// Tasks often follow each other, so the role sleeps only after this many checks that found no
/// attempt.
const IDLE_CHECKS: u32 = 10;

/// The role that sends overdue reports from the maintenance thread.
pub(crate) struct FallbackReporter {
    shared: Arc<Shared>,
    broker: Broker,
    idle_checks: u32,
}

impl FallbackReporter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.separate("fallback reporter");
        Self { shared, broker, idle_checks: 0 }
    }
}

impl Role for FallbackReporter {
    async fn tick(&mut self) -> Duration {
        for _ in 0..CALLS_MAX {
            if self.shared.reporter.waited() <= OVERDUE {
                break;
            }
            // The role takes one batch at a time: the claimer may return and take the next one.
            let batches = self.shared.reporter.take(1);
            let calls =
                batches.iter().map(|report_batch| report_batch.call(&self.broker)).collect();
            let mut answers = self.broker.run_all(calls).await.into_iter();
            take_in_reports(&self.shared, batches, &mut answers);
            // The claimer may have stopped its claims because of these reports.
            self.shared.wakeups.fallback_reported();
        }
        let table = &self.shared.attempts;
        let idle = table.is_empty() && self.shared.reporter.len() == 0;
        self.idle_checks = if idle { self.idle_checks + 1 } else { 0 };
        let sleeper = &self.shared.wakeups.fallback_reporter;
        if self.idle_checks > IDLE_CHECKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        CHECK_EVERY
    }
}

#[cfg(test)]
mod tests {
    use optimus_core::{Lease, QueueName, TaskId, Token, WorkerId, broker::Completion};
    use optimus_testkit::{FaultProxy, RedisServer, Way, eventually};

    use super::*;
    use crate::{Worker, decide_outcome::Report, heartbeat::Heartbeat, test_worker::Nothing};

    const SOON: Duration = Duration::from_secs(20);

    /// Returns a report with a result of this many bytes. Redis refuses it, because no worker has
    /// the lease.
    fn report(bytes: usize) -> Report {
        let (queue, worker) = (QueueName::new("default").unwrap(), WorkerId::generate("test", 1));
        let lease = Lease { id: TaskId::new(queue), worker, token: Token { seq: 1, fence: 1 } };
        Report::Complete(Completion {
            lease,
            task: "nothing",
            biz_id: None,
            attempt: 1,
            took: Duration::ZERO,
            ended_ms: 0,
            lane: None,
            outcome_ttl: None,
            member: None,
            result: Some((vec![b'x'; bytes], SOON)),
            has_sides: false,
        })
    }

    #[tokio::test]
    async fn a_heartbeat_does_not_wait_behind_the_reports() {
        let redis = RedisServer::start();
        let proxy = FaultProxy::start(&redis.url()).await;
        let worker = Worker::builder(&proxy.url()).quiet().only_named_tasks();
        let shared = worker.task_type::<Nothing>().build().unwrap().idle_worker().await;
        let mut reporter = FallbackReporter::new(shared.clone());
        let mut heartbeat = Heartbeat::new(shared.clone());
        // After these calls, Redis knows the scripts.
        shared.reporter.push(report(1));
        let is_overdue = async || shared.reporter.waited() > OVERDUE;
        eventually("the claimer does not send the report", SOON, is_overdue).await;
        reporter.tick().await;
        heartbeat.tick().await;
        assert_eq!(shared.reporter.len(), 0);

        shared.reporter.push(report(1_000_000));
        eventually("the claimer does not send the report", SOON, is_overdue).await;
        proxy.rate(Way::Up, 200_000);
        shared.queues[0].lapsed();
        tokio::select! {
            biased;
            _ = reporter.tick() => panic!("the heartbeat waits"),
            _ = heartbeat.tick() => {}
        }
    }
}
