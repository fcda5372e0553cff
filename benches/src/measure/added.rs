//! Measures the Redis instructions and the processor time of Redis that a feature adds to a plain
//! task.

use super::life::{Life, Made, Stage, Taken};
use super::plain;
use super::redis_instructions::{broker, count_stages};
use crate::bench::{Bench, progress};
use crate::callgrind;
use crate::field::{Field, Sample};
use crate::row::{Row, params};

const TASKS: usize = 800;
const CALLS_MIN: usize = 20;
/// The number of tasks of which Redis' processor time is measured. It is much less steady than the
/// instructions, so there are more of them.
const TIMED_TASKS: u64 = 50_000;
/// Calls of one task take longer, and their cost is higher than the noise.
const TIMED_CALLS_MAX: usize = 4_000;
/// The parameter of the rows with what the feature adds to a task, whose value is the batch.
const ADDED: &str = "added_at_batch";
const STAGES: [(Stage, &str); 3] =
    [(Stage::Start, "start"), (Stage::Submit, "submit"), (Stage::Complete, "claim and complete")];

/// Counts the instructions for tasks of `of_feature` and for plain tasks. `of_feature` gets the
/// number of a task and the number of all tasks.
pub(super) fn rows(
    bench: &Bench,
    name: &'static str,
    feature: &'static str,
    of_feature: impl FnMut(usize, usize) -> anyhow::Result<Made>,
) -> anyhow::Result<Vec<Row>> {
    rows_of(bench, name, feature, (&[1, 16, 128], Taken::Claimed), of_feature)
}

/// Does the same with calls of these sizes.
pub(super) fn rows_of(
    bench: &Bench,
    name: &'static str,
    feature: &'static str,
    (batches, taken): (&[usize], Taken),
    mut of_feature: impl FnMut(usize, usize) -> anyhow::Result<Made>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &batch in batches {
        rows.push(timed(bench, name, (batch, taken), &mut of_feature)?);
        if !callgrind::is_there() {
            continue;
        }
        let calls = (TASKS / batch).max(CALLS_MIN);
        let mut count = |tasks: &'static str, taken, make: &mut dyn FnMut(usize, usize) -> _| {
            let stages = STAGES.map(|(stage, _)| stage);
            let samples = count_stages(bench, &stages, (calls, batch), taken, make)?;
            let each = samples.iter().filter_map(|sample| sample.get(Field::InstructionsPerTask));
            let whole_life = each.sum::<f64>();
            for ((_, stage), sample) in STAGES[1..].iter().zip(samples) {
                let shown =
                    [("of", (*stage).into()), ("batch", batch.into()), ("tasks", tasks.into())];
                rows.push(Row::of_runs(name, params(shown), &[sample]));
            }
            anyhow::Ok(whole_life)
        };
        let make_plain = &mut |_, _| Ok(Made::plain(plain::submission()?));
        let plain = count("plain", Taken::Claimed, make_plain)?;
        let featured = count(feature, taken, &mut of_feature)?;
        let added = Sample::new().with(Field::InstructionsPerTask, featured - plain);
        rows.push(Row::of_runs(name, params([(ADDED, batch.into())]), &[added]));
    }
    Ok(rows)
}

/// Measures the processor time of Redis for the same lives, one after the other in each run.
fn timed(
    bench: &Bench,
    name: &'static str,
    (batch, taken): (usize, Taken),
    of_feature: &mut dyn FnMut(usize, usize) -> anyhow::Result<Made>,
) -> anyhow::Result<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let calls =
        usize::try_from(bench.scale.tasks(TIMED_TASKS))?.div_ceil(batch).min(TIMED_CALLS_MAX);
    let us_per_task = |taken, make: &mut dyn FnMut(usize, usize) -> _| {
        let redis = &bench.redis;
        redis.probe().flush()?;
        let broker = broker(&redis.url(), "bench")?;
        let before = redis.probe().counters()?;
        let make = &mut |number| make(number, calls * batch);
        runtime.block_on(Life { broker, calls, batch, taken, make }.up_to(Stage::Complete))?;
        let spent = redis.probe().since(&before)?;
        anyhow::Ok(spent.cpu_s * 1e6 / (calls * batch) as f64)
    };
    let shown = params([("timed_at_batch", batch.into())]);
    progress(name, &shown, "timing");
    let mut samples = Vec::new();
    for _ in 0..bench.scale.runs {
        let make_plain = &mut |_, _| Ok(Made::plain(plain::submission()?));
        let plain = us_per_task(Taken::Claimed, make_plain)?;
        let featured = us_per_task(taken, of_feature)?;
        samples.push(Sample::new().with(Field::RedisUsOverPlain, featured - plain));
    }
    Ok(Row::of_runs(name, shown, &samples))
}
