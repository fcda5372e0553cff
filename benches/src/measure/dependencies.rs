//! The number of Redis instructions for a task of a pair, of which one waits for the other, beside
//! a plain one, counted by valgrind.

use std::time::Duration;

use anyhow::ensure;
use optimus_core::broker::{Batch, Broker, LEDGER_SLOTS};
use optimus_core::{After, Prerequisite, Submission, WorkerId};

use super::redis_instructions::count_stages;
use super::{Measurement, plain};
use crate::bench::Bench;
use crate::callgrind;
use crate::field::{Field, Sample};
use crate::row::{Row, params};

pub(super) const DEPENDENCIES: Measurement = Measurement {
    name: "dependencies",
    about: "instructions of Redis for tasks that wait for others and for plain ones, by valgrind",
    run: dependencies,
};

const TASKS: usize = 800;
const CALLS_MIN: usize = 20;
/// The parameter of the rows with what a prerequisite adds to a task of a pair, whose value is the
/// batch.
const ADDED: &str = "added_at_batch";
const LEASE: Duration = Duration::from_secs(3_600);
/// The last step of the tasks.
const STAGES: [&str; 3] = ["start", "submit", "claim and complete"];

fn dependencies(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for batch in [1, 16, 128] {
        let calls = (TASKS / batch).max(CALLS_MIN);
        let mut whole_lives = Vec::new();
        for (tasks, has_pairs) in [("plain", false), ("in pairs", true)] {
            let run = async |broker, calls, stage| {
                Life { broker, calls, batch, has_pairs }.up_to(stage).await
            };
            let samples = count_stages(bench, STAGES.len(), (calls, batch), run)?;
            let each = samples.iter().filter_map(|sample| sample.get(Field::InstructionsPerTask));
            whole_lives.push(each.sum::<f64>());
            for (stage, sample) in STAGES[1..].iter().zip(samples) {
                let shown =
                    [("of", (*stage).into()), ("batch", batch.into()), ("tasks", tasks.into())];
                rows.push(Row::of_runs(DEPENDENCIES.name, params(shown), &[sample]));
            }
        }
        let added = Sample::new().with(Field::InstructionsPerTask, whole_lives[1] - whole_lives[0]);
        rows.push(Row::of_runs(DEPENDENCIES.name, params([(ADDED, batch.into())]), &[added]));
    }
    Ok(rows)
}

struct Life {
    broker: Broker,
    calls: usize,
    batch: usize,
    has_pairs: bool,
}

impl Life {
    async fn up_to(&self, stage: usize) -> anyhow::Result<()> {
        let queue = plain::queue()?;
        let worker = WorkerId::from_stored("worker");
        self.broker.register(&queue, &worker, LEASE, "{}").await?;
        let mut first = None;
        for number in 0..self.calls * usize::from(stage >= 1) {
            let tasks = (0..self.batch).map(|_| {
                let task = plain::submission()?;
                Ok(match first.take() {
                    Some(id) if self.has_pairs => {
                        task.waiting_for(After::new([Prerequisite::Task(id)]))
                    }
                    _ => {
                        first = Some(task.id().clone());
                        task
                    }
                })
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
            let done: Vec<_> = leases.map(|lease| plain::completion(lease, claim.now_ms)).collect();
            let refused =
                self.broker.report(self.broker.complete_call(&queue, &worker, &done)).await?;
            ensure!(refused.stale.is_empty(), "a report was refused");
        }
        Ok(())
    }
}
