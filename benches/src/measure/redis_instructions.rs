//! Counts the instructions of Redis for each call of a plain task's life, and for the whole life,
//! with valgrind.

use optimus_core::broker::{Broker, Endpoint};
use optimus_testkit::RedisServer;

use super::life::{Life, Made, Stage, Taken};
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

/// The last steps of tasks. The cost of a step is the difference to the previous step.
const STAGES: [(Stage, &str); 4] = [
    (Stage::Start, "start"),
    (Stage::Submit, "submit"),
    (Stage::Claim, "claim"),
    (Stage::Complete, "complete"),
];

fn redis_instructions(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for batch in [1, 16, 128] {
        let calls = (TASKS / batch).max(CALLS_MIN);
        let make = &mut |_, _| Ok(Made::plain(plain::submission()?));
        let stages = STAGES.map(|(stage, _)| stage);
        let samples = count_stages(bench, &stages, (calls, batch), Taken::Claimed, make)?;
        let life = samples.iter().fold(Sample::new(), Sample::plus);
        for ((_, stage), sample) in STAGES[1..].iter().zip(samples) {
            let shown = params([("of", (*stage).into()), ("batch", batch.into())]);
            rows.push(Row::of_runs(REDIS_INSTRUCTIONS.name, shown, &[sample]));
        }
        let shown = params([("life_at_batch", batch.into())]);
        rows.push(Row::of_runs(REDIS_INSTRUCTIONS.name, shown, &[life]));
    }
    Ok(rows)
}

/// Runs a life up to each of these stages, and returns what each stage adds to the one before. A
/// stage has this many calls of this many tasks. `make` gets the number of a task and how many
/// there are.
pub(super) fn count_stages(
    bench: &Bench,
    stages: &[Stage],
    (calls, batch): (usize, usize),
    taken: Taken,
    make: &mut dyn FnMut(usize, usize) -> anyhow::Result<Made>,
) -> anyhow::Result<Vec<Sample>> {
    let per_call = count_steps(bench, stages.len(), calls, async |broker, step, calls| {
        let make = &mut |number| make(number, calls * batch);
        Life { broker, calls, batch, taken, make }.up_to(stages[step]).await
    })?;
    let sample = |per_call: f64| {
        Sample::new()
            .with(Field::InstructionsPerCall, per_call)
            .with(Field::InstructionsPerTask, per_call / batch as f64)
    };
    Ok(per_call.into_iter().map(sample).collect())
}

/// Runs a program up to each of so many steps, each time on a new server, and returns the
/// instructions of a call that each step but the first adds to the one before. `up_to` gets the
/// last step, and how many calls a step has. On each server, a short run up to the last step comes
/// first, in another namespace. In it Redis compiles the scripts, so that no difference contains
/// that.
pub(super) fn count_steps(
    bench: &Bench,
    steps: usize,
    calls: usize,
    mut up_to: impl AsyncFnMut(Broker, usize, usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut totals = Vec::new();
    for step in 0..steps {
        let log = Log::in_folder(bench.redis.folder());
        let launcher = log.command_line_within(COUNTED, APART);
        // Under valgrind every call is slow.
        let quiet =
            RedisServer::builder().tcp().arg("--hz", "1").arg("--slowlog-log-slower-than", "-1");
        let server = quiet.under(&launcher).start();
        let runs = [("warm-up", steps - 1, WARM_UP_CALLS), ("bench", step, calls)];
        for (namespace, step, calls) in runs {
            runtime.block_on(up_to(broker(&server.url(), namespace)?, step, calls))?;
        }
        end(server)?;
        totals.push(log.instructions()?);
    }
    let added = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64 / calls as f64;
    Ok(totals.windows(2).map(added).collect())
}

/// Returns a broker for the server with this URL.
pub(super) fn broker(url: &str, namespace: &str) -> anyhow::Result<Broker> {
    let endpoint = Endpoint::parse(url).map_err(|problem| anyhow::anyhow!(problem))?;
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
