//! Counts the instructions of Redis for each call of a plain task's life, and for the whole life,
//! with valgrind.

use std::time::Duration;

use anyhow::ensure;
use optimus_core::broker::{Batch, Broker, Endpoint, LEDGER_SLOTS};
use optimus_core::{Submission, WorkerId};
use optimus_testkit::RedisServer;

use super::{Measurement, plain};
use crate::bench::Bench;
use crate::callgrind::{self, Log};
use crate::field::{Field, Sample};
use crate::row::{Row, params};

pub(super) const REDIS_INSTRUCTIONS: Measurement = Measurement {
    name: "redis_instructions",
    about: "instructions of Redis for submit, claim and complete, by valgrind",
    run: redis_instructions,
};

/// The number of tasks of each row, in the necessary number of calls.
const TASKS: usize = 800;
const CALLS_MIN: usize = 20;
/// The calls before the count.
const WARM_UP_CALLS: usize = 4;
/// The event loop of Redis, which handles calls. Only its instructions count.
const COUNTED: &str = "aeMain";
/// The periodic work of Redis. It also runs without calls, so its instructions do not count.
const APART: &str = "serverCron";
const LEASE: Duration = Duration::from_secs(3_600);

/// The last steps of tasks. The cost of a step is the difference to the previous step.
const STAGES: [&str; 4] = ["start", "submit", "claim", "complete"];

fn redis_instructions(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for batch in [1, 16, 128] {
        let calls = (TASKS / batch).max(CALLS_MIN);
        let run = async |broker, calls, stage| Life { broker, calls, batch }.up_to(stage).await;
        let samples = count_stages(bench, STAGES.len(), (calls, batch), run)?;
        let life = samples.iter().fold(Sample::new(), Sample::plus);
        for (stage, sample) in STAGES[1..].iter().zip(samples) {
            let shown = params([("of", (*stage).into()), ("batch", batch.into())]);
            rows.push(Row::of_runs(REDIS_INSTRUCTIONS.name, shown, &[sample]));
        }
        let shown = params([("life_at_batch", batch.into())]);
        rows.push(Row::of_runs(REDIS_INSTRUCTIONS.name, shown, &[life]));
    }
    Ok(rows)
}

/// Runs a life up to each of its stages, each time on a new server, and returns what each stage
/// adds to the one before. A stage has this many calls of this many tasks. `run` gets the number of
/// calls and the last stage. On each server, a short life up to the last stage runs first, in
/// another namespace. In it Redis compiles the scripts, so that no difference contains that.
pub(super) fn count_stages(
    bench: &Bench,
    stages: usize,
    (calls, batch): (usize, usize),
    run: impl AsyncFn(Broker, usize, usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut totals = Vec::new();
    for stage in 0..stages {
        let log = Log::in_folder(bench.redis.folder());
        let launcher = log.command_line_within(COUNTED, APART);
        let server = RedisServer::builder().tcp().arg("--hz", "1").under(&launcher).start();
        runtime.block_on(async {
            run(broker(&server, "warm-up")?, WARM_UP_CALLS, stages - 1).await?;
            run(broker(&server, "bench")?, calls, stage).await
        })?;
        end(server)?;
        totals.push(log.instructions()?);
    }
    let sample = |pair: &[u64]| {
        let per_call = pair[1].saturating_sub(pair[0]) as f64 / calls as f64;
        Sample::new()
            .with(Field::InstructionsPerCall, per_call)
            .with(Field::InstructionsPerTask, per_call / batch as f64)
    };
    Ok(totals.windows(2).map(sample).collect())
}

fn broker(server: &RedisServer, namespace: &str) -> anyhow::Result<Broker> {
    let endpoint = Endpoint::parse(&server.url()).map_err(|problem| anyhow::anyhow!(problem))?;
    Ok(Broker::new(endpoint, namespace, "bench"))
}

/// Waits until Redis ends by itself, so that valgrind writes its counts.
fn end(server: RedisServer) -> anyhow::Result<()> {
    let mut connection = redis::Client::open(server.url())?.get_connection()?;
    // The reply to this command is the end of the connection.
    drop(redis::cmd("SHUTDOWN").arg("NOSAVE").query::<()>(&mut connection));
    server.wait();
    Ok(())
}

struct Life {
    broker: Broker,
    calls: usize,
    batch: usize,
}

impl Life {
    async fn up_to(&self, stage: usize) -> anyhow::Result<()> {
        let queue = plain::queue()?;
        let worker = WorkerId::from_stored("worker");
        self.broker.register(&queue, &worker, LEASE, "{}").await?;
        for number in 0..self.calls * usize::from(stage >= 1) {
            let tasks: Vec<Submission> =
                (0..self.batch).map(|_| plain::submission()).collect::<Result<_, _>>()?;
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
        let mut claims = Vec::new();
        for seq in 0..self.calls * usize::from(stage >= 2) {
            let claim = self.broker.claim(&queue, &worker, seq as u64 + 1, self.batch).await?;
            ensure!(claim.grants.len() == self.batch, "a claim was not filled");
            claims.push(claim);
        }
        for claim in claims.iter().take(self.calls * usize::from(stage >= 3)) {
            let leases = plain::leases(claim, &worker);
            let done: Vec<_> = leases.map(|lease| plain::completion(lease, claim.now_ms)).collect();
            let refused =
                self.broker.report(self.broker.complete_call(&queue, &worker, &done)).await?;
            ensure!(refused.stale.is_empty(), "a report was refused");
        }
        Ok(())
    }
}
