//! Measures the Redis instructions that a feature adds to a plain task.

use super::life::{Made, Stage, Taken};
use super::plain;
use super::redis_instructions::count_stages;
use crate::bench::Bench;
use crate::callgrind;
use crate::field::{Field, Sample};
use crate::row::{Row, params};

const TASKS: usize = 800;
const CALLS_MIN: usize = 20;
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
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for &batch in batches {
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
