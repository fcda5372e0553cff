//! Measures the cost for one worker to serve many queues, compared with one queue with as many
//! tasks.

use super::Measurement;
use super::one_drain::Drain;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::row::{Params, Row, params};
use crate::workers::Staff;

pub(super) const QUEUES: Measurement = Measurement {
    name: "queues",
    about: "100,000 ready tasks in 8 and in 64 queues of one worker, compared with one queue",
    run: queues,
};

const IN_FLIGHT: usize = 100;
/// The numbers of queues. One queue comes first, because the others are compared with it.
const COUNTS: [usize; 3] = [1, 8, 64];

fn queues(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let tasks = bench.scale.tasks(100_000);
    let shown = |queues: usize| -> Params {
        let in_flight = ("in_flight", IN_FLIGHT.into());
        params([("queues", queues.into()), in_flight, ("tasks", tasks.into())])
    };
    // Each run measures all numbers, so that each is compared with a drain of the same minute.
    let mut samples: [Vec<Sample>; COUNTS.len()] = Default::default();
    for run in 1..=bench.scale.runs {
        let mut of_one = None;
        for (of_count, queues) in samples.iter_mut().zip(COUNTS) {
            progress(QUEUES.name, &shown(queues), &format!("run {run} of {}", bench.scale.runs));
            let staff = Staff { queues, ..Staff::one(IN_FLIGHT) };
            let sample = Drain::plain(tasks, staff).run(bench)?;
            let rate = sample.get(Field::TasksPerS);
            let one = *of_one.get_or_insert(rate);
            let share = rate.zip(one).map(|(rate, one)| rate / one);
            of_count.push(sample.with_known(Field::ShareOfOneQueue, share));
        }
    }
    let rows = samples.iter().zip(COUNTS);
    Ok(rows.map(|(of_count, queues)| Row::of_runs(QUEUES.name, shown(queues), of_count)).collect())
}
