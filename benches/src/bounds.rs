//! Sets hard bounds on the work of Redis, of a client and of a worker for a task, and on a worker's
//! connections. The bounds do not depend on the speed of the machine, so a change that needs more
//! work fails on any machine.

use Param::{Number, Text};

use crate::bench::describe;
use crate::field::Field;
use crate::row::Row;

/// The rows to which a bound applies, and the maximum of their median.
struct Bound {
    name: &'static str,
    /// A parameter and its value. None selects every row of the measurement.
    param: Option<(&'static str, Param)>,
    most: Most,
}

/// The unit of a bound.
#[derive(Clone, Copy, Debug)]
enum Most {
    /// Per task.
    Asked { calls: f64, reads: f64 },
    /// Per worker.
    Connections(f64),
    /// Commands per second, of all workers, with or without work.
    Rate(f64),
    /// Instructions per task, of Redis or of a client or a worker.
    Instructions(f64),
    /// Instructions of Redis for a call.
    CallInstructions(f64),
}

impl Most {
    fn limits(self) -> Vec<(Field, f64)> {
        match self {
            Self::Asked { calls, reads } => {
                vec![(Field::RedisCallsPerTask, calls), (Field::ReadsPerTask, reads)]
            }
            Self::Connections(most) => vec![(Field::Connections, most)],
            Self::Rate(most) => vec![(Field::CommandsPerS, most)],
            Self::Instructions(most) => vec![(Field::InstructionsPerTask, most)],
            Self::CallInstructions(most) => vec![(Field::InstructionsPerCall, most)],
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Param {
    Number(u64),
    Text(&'static str),
}

/// The bounds of a quick run. Calls include those of scripts. On a busy machine, batches are
/// smaller and need more calls per task, so all bounds except the first two have some reserve.
const BOUNDS: &[Bound] = &[
    bound("submit_seq", None, 7.1, 1.05),
    bound("drain", Some(("in_flight", Number(1))), 19.5, 1.1),
    bound("submit_all", None, 0.02, 0.03),
    bound("submit_concurrent", None, 0.2, 0.05),
    bound("drain", Some(("in_flight", Number(10))), 4.0, 0.2),
    bound("drain", Some(("in_flight", Number(16))), 2.6, 0.12),
    bound("drain", Some(("in_flight", Number(100))), 0.9, 0.04),
    bound("drain", Some(("in_flight", Number(1_000))), 0.5, 0.02),
    bound("features", Some(("feature", Text("plain"))), 0.9, 0.04),
    bound("used", None, 0.9, 0.04),
    bound("queues", Some(("queues", Number(1))), 0.9, 0.04),
    bound("queues", Some(("queues", Number(8))), 4.0, 0.1),
    bound("queues", Some(("queues", Number(64))), 14.0, 0.3),
    Bound { name: "connections", param: None, most: Most::Connections(4.0) },
    rate("idle", ("workers", Number(1)), 1.3),
    rate("idle", ("workers", Number(8)), 4.5),
    rate("idle", ("queues", Number(20)), 30.0),
    rate("due", ("workers", Number(10)), 300.0),
    bound("waiting", Some(("when", Text("after"))), 3.1, 0.03),
    bound("explain", Some(("behind", Text("queue"))), 60.0, 2.1),
    // It also looks whether those that have the lane go on.
    bound("explain", Some(("behind", Text("lane"))), 62.0, 3.1),
    of_program(("of", Text("submit")), 45_000.0),
    of_program(("of", Text("submit_all")), 10_200.0),
    of_program(("in_flight", Number(1)), 75_000.0),
    of_program(("in_flight", Number(100)), 22_000.0),
    per_task("redis_instructions", "life_at_batch", 1, 253_000.0),
    per_task("redis_instructions", "life_at_batch", 16, 48_000.0),
    per_task("redis_instructions", "life_at_batch", 128, 34_500.0),
    added("lanes", 1, 134_000.0),
    added("lanes", 16, 63_000.0),
    added("lanes", 128, 50_000.0),
    added("rate", 1, 78_000.0),
    added("rate", 16, 33_000.0),
    added("rate", 128, 22_000.0),
    added("max_working", 1, 112_000.0),
    added("max_working", 16, 56_000.0),
    added("max_working", 128, 42_000.0),
    added("groups", 1, 398_000.0),
    added("groups", 16, 29_500.0),
    added("groups", 128, 11_500.0),
    added("gathers", 16, 48_000.0),
    added("gathers", 128, 18_000.0),
    added("retry", 1, 680_000.0),
    added("retry", 16, 89_000.0),
    added("retry", 128, 55_000.0),
    added("dependencies", 1, 335_000.0),
    added("dependencies", 16, 63_000.0),
    added("dependencies", 128, 39_000.0),
    of_verb("add", 655_000.0),
    of_verb("assign", 550_000.0),
    of_verb("check", 312_000.0),
    of_verb("give back", 1_270_000.0),
    of_verb("assign returned", 685_000.0),
    of_verb("complete", 595_000.0),
    bound("features", Some(("feature", Text("biz_id"))), 1.2, 0.05),
    bound("features", Some(("feature", Text("result"))), 2.5, 0.06),
    bound("features", Some(("feature", Text("delay"))), 1.2, 0.05),
    bound("features", Some(("feature", Text("retry"))), 2.4, 0.08),
];

const fn bound(
    name: &'static str,
    param: Option<(&'static str, Param)>,
    calls: f64,
    reads: f64,
) -> Bound {
    Bound { name, param, most: Most::Asked { calls, reads } }
}

const fn rate(name: &'static str, param: (&'static str, Param), most: f64) -> Bound {
    Bound { name, param: Some(param), most: Most::Rate(most) }
}

/// What a feature adds to a task.
const fn added(name: &'static str, batch: u64, most: f64) -> Bound {
    per_task(name, "added_at_batch", batch, most)
}

const fn per_task(name: &'static str, of: &'static str, batch: u64, most: f64) -> Bound {
    Bound { name, param: Some((of, Number(batch))), most: Most::Instructions(most) }
}

/// A call of 20 items of a dispenser.
const fn of_verb(verb: &'static str, most: f64) -> Bound {
    let param = Some(("of", Text(verb)));
    Bound { name: "dispenser", param, most: Most::CallInstructions(most) }
}

/// What a client or a worker does for a task.
const fn of_program(param: (&'static str, Param), most: f64) -> Bound {
    Bound { name: "instructions", param: Some(param), most: Most::Instructions(most) }
}

/// Prints each bound with its measured value. Returns a sentence for each broken bound.
pub(crate) fn broken(rows: &[Row]) -> Vec<String> {
    let ours = || rows.iter().filter(|row| row.peer.is_none());
    let mut broken = Vec::new();
    println!("\nbounds");
    for bound in BOUNDS.iter().filter(|bound| ours().any(|row| row.name == bound.name)) {
        if !ours().any(|row| bound.is_about(row)) {
            broken.push(format!("{}: no row matches the bound {:?}", bound.name, bound.param));
        }
        for row in ours().filter(|row| bound.is_about(row)) {
            let limits = bound.most.limits().into_iter();
            let held = limits.map(|(field, most)| held(row, field, most, &mut broken));
            println!("  {:<52}{}", of(row), held.collect::<String>());
        }
    }
    broken
}

/// Returns `<what>: <found> of <most>`. Reports a value above its bound, too.
fn held(row: &Row, field: Field, most: f64, broken: &mut Vec<String>) -> String {
    let found = row.values.get(&field).map_or(f64::INFINITY, |spread| spread.median);
    let asked = field.heading();
    if found > most {
        broken.push(format!("{}: {found:.3} {asked}, and {most} is the bound", of(row)));
    }
    format!("{:>40}", format!("{asked}: {found:.3} of {most}"))
}

fn of(row: &Row) -> String {
    format!("{} {}", row.name, describe(&row.params))
}

impl Bound {
    fn is_about(&self, row: &Row) -> bool {
        let fits = |(name, value): (&str, Param)| {
            row.params.get(name).is_some_and(|found| match value {
                Param::Number(number) => found.as_u64() == Some(number),
                Param::Text(text) => found.as_str() == Some(text),
            })
        };
        row.name == self.name && self.param.is_none_or(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Sample;
    use crate::row::{Params, params};

    fn row(params: Params, calls: f64) -> Row {
        let run =
            Sample::new().with(Field::RedisCallsPerTask, calls).with(Field::ReadsPerTask, 0.0);
        Row::of_runs("features", params, &[run])
    }

    fn features(calls: f64) -> Vec<Row> {
        let names = ["plain", "biz_id", "result", "delay", "retry"];
        names.map(|name| row(params([("feature", name.into())]), calls)).into()
    }

    #[test]
    fn a_value_above_its_bound_is_reported_with_both_numbers() {
        assert!(broken(&features(0.5)).is_empty());
        let sentences = broken(&features(3.0));
        assert_eq!(sentences.len(), 5, "{sentences:?}");
        let named = "feature=plain: 3.000 redis calls/task, and 0.9 is the bound";
        assert!(sentences[0].contains(named), "{sentences:?}");
    }

    #[test]
    fn a_bound_without_a_row_is_broken() {
        let sentences = broken(&[row(params([]), 0.1)]);
        assert_eq!(sentences.len(), 5, "{sentences:?}");
    }

    #[test]
    fn a_worker_with_one_connection_more_than_its_bound_is_reported() {
        let with = |connections| {
            let run = Sample::new().with(Field::Connections, connections);
            broken(&[Row::of_runs("connections", params([("queues", 200.into())]), &[run])])
        };
        assert!(with(4.0).is_empty());
        let sentences = with(5.0);
        assert!(sentences[0].contains("queues=200: 5.000 connections, and 4 is the bound"));
    }

    #[test]
    fn a_peers_row_has_no_bound() {
        let theirs = features(9.0).into_iter().map(|row| row.of_peer("x")).collect::<Vec<_>>();
        assert!(broken(&theirs).is_empty());
    }
}
