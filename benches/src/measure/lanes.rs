//! The number of Redis instructions for a task of a lane, beside a plain one, counted by valgrind.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use optimus_core::broker::{Batch, Broker, LEDGER_SLOTS};
use optimus_core::{Lane, Submission, TaskId, WorkerId};

use super::redis_instructions::count_stages;
use super::{Measurement, plain};
use crate::bench::Bench;
use crate::callgrind;
use crate::field::{Field, Sample};
use crate::row::{Row, params};

pub(super) const LANES: Measurement = Measurement {
    name: "lanes",
    about: "instructions of Redis for tasks of lanes and for plain ones, by valgrind",
    run: lanes,
};

const TASKS: usize = 800;
const CALLS_MIN: usize = 20;
/// The tasks of each lane: most of them wait before they run.
const TASKS_A_LANE: usize = 4;
/// The parameter of the rows with what a lane adds to a task, whose value is the batch.
const ADDED: &str = "added_at_batch";
const LEASE: Duration = Duration::from_secs(3_600);
/// The last step of the tasks.
const STAGES: [&str; 3] = ["start", "submit", "claim and complete"];

fn lanes(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for batch in [1, 16, 128] {
        let calls = (TASKS / batch).max(CALLS_MIN);
        let mut whole_lives = Vec::new();
        for (tasks, has_lanes) in [("plain", false), ("of lanes", true)] {
            let run = async |broker, calls, stage| {
                Life { broker, calls, batch, has_lanes }.up_to(stage).await
            };
            let samples = count_stages(bench, STAGES.len(), (calls, batch), run)?;
            let each = samples.iter().filter_map(|sample| sample.get(Field::InstructionsPerTask));
            whole_lives.push(each.sum::<f64>());
            for (stage, sample) in STAGES[1..].iter().zip(samples) {
                let shown =
                    [("of", (*stage).into()), ("batch", batch.into()), ("tasks", tasks.into())];
                rows.push(Row::of_runs(LANES.name, params(shown), &[sample]));
            }
        }
        let added = Sample::new().with(Field::InstructionsPerTask, whole_lives[1] - whole_lives[0]);
        rows.push(Row::of_runs(LANES.name, params([(ADDED, batch.into())]), &[added]));
    }
    Ok(rows)
}

struct Life {
    broker: Broker,
    calls: usize,
    batch: usize,
    has_lanes: bool,
}

impl Life {
    async fn up_to(&self, stage: usize) -> anyhow::Result<()> {
        let queue = plain::queue()?;
        let worker = WorkerId::from_stored("worker");
        self.broker.register(&queue, &worker, LEASE, "{}").await?;
        let mut lanes: HashMap<TaskId, Lane> = HashMap::new();
        let count = self.calls * self.batch / TASKS_A_LANE;
        for number in 0..self.calls * usize::from(stage >= 1) {
            let tasks = (0..self.batch).map(|at| {
                let task = plain::submission()?;
                if !self.has_lanes {
                    return Ok(task);
                }
                let lane = Lane::new(format!("user-{}", (number * self.batch + at) % count));
                lanes.insert(task.id().clone(), lane.clone());
                Ok(task.in_lane(lane))
            });
            let tasks: Vec<Submission> = tasks.collect::<anyhow::Result<_>>()?;
            let number = number as u64 + 1;
            let batch = Batch {
                queue: &queue,
                client: "client",
                number,
                since: number.saturating_sub(LEDGER_SLOTS),
                keep: false,
                tasks: &tasks,
            };
            self.broker.submit(&batch).await?;
        }
        for seq in 0..self.calls * usize::from(stage >= 2) {
            let claim = self.broker.claim(&queue, &worker, seq as u64 + 1, self.batch).await?;
            ensure!(claim.grants.len() == self.batch, "a claim was not filled");
            let leases = plain::leases(&claim, &worker);
            let done: Vec<_> = leases
                .map(|lease| {
                    let lane = lanes.get(&lease.id).cloned();
                    let mut done = plain::completion(lease, claim.now_ms);
                    done.lane = lane;
                    done
                })
                .collect();
            let refused =
                self.broker.report(self.broker.complete_call(&queue, &worker, &done)).await?;
            ensure!(refused.stale.is_empty(), "a report was refused");
        }
        Ok(())
    }
}
