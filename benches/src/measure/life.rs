//! The life of tasks as a broker sees it: submits, claims and reports of completions, each of the
//! same number of tasks, up to a stage.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use optimus_core::broker::{Batch, Broker, LEDGER_SLOTS};
use optimus_core::{Lane, Submission, TaskId, WorkerId};

use super::plain;

const LEASE: Duration = Duration::from_secs(3_600);

/// The last step of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Stage {
    Start,
    Submit,
    /// Every task is claimed before the first one ends.
    Claim,
    /// Every claim is reported before the next one.
    Complete,
}

/// A task, and its lane.
pub(super) type Made = (Submission, Option<Lane>);

/// So many calls of so many tasks each.
pub(super) struct Life<'a> {
    pub(super) broker: Broker,
    pub(super) calls: usize,
    pub(super) batch: usize,
    /// Makes the task with this number.
    pub(super) make: &'a mut dyn FnMut(usize) -> anyhow::Result<Made>,
}

impl Life<'_> {
    pub(super) async fn up_to(self, stage: Stage) -> anyhow::Result<()> {
        let Self { broker, calls, batch, make } = self;
        let queue = plain::queue()?;
        let worker = WorkerId::from_stored("worker");
        broker.register(&queue, &worker, LEASE, "{}").await?;
        let mut lanes: HashMap<TaskId, Lane> = HashMap::new();
        for call in 0..calls * usize::from(stage >= Stage::Submit) {
            let mut tasks = Vec::new();
            for at in 0..batch {
                let (task, lane) = make(call * batch + at)?;
                lanes.extend(lane.map(|lane| (task.id().clone(), lane)));
                tasks.push(task);
            }
            let number = call as u64 + 1;
            let batch = Batch {
                queue: &queue,
                client: "client",
                number,
                since: number.saturating_sub(LEDGER_SLOTS),
                keep: false,
                tasks: &tasks,
            };
            broker.submit(&batch).await?;
        }
        for call in 0..calls * usize::from(stage >= Stage::Claim) {
            let claim = broker.claim(&queue, &worker, call as u64 + 1, batch).await?;
            ensure!(claim.grants.len() == batch, "a claim was not filled");
            if stage < Stage::Complete {
                continue;
            }
            let leases = plain::leases(&claim, &worker);
            let done: Vec<_> = leases
                .map(|lease| {
                    let lane = lanes.get(&lease.id).cloned();
                    let mut done = plain::completion(lease, claim.now_ms);
                    done.lane = lane;
                    done
                })
                .collect();
            let refused = broker.report(broker.complete_call(&queue, &worker, &done)).await?;
            ensure!(refused.stale.is_empty(), "a report was refused");
        }
        Ok(())
    }
}
