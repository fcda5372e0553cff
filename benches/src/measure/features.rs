//! Measures the cost of a feature in addition to the plain path. An unused feature must cost
//! nothing.

use super::Measurement;
use super::one_drain::Drain;
use crate::agent::protocol::Kind;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::row::{Params, Row, params};
use crate::workers::Staff;

pub(super) const FEATURES: Measurement = Measurement {
    name: "features",
    about: "the cost of biz id, result, delay and retry over the plain path",
    run: features,
};

const IN_FLIGHT: usize = 100;

const KINDS: [(&str, Kind); 5] = [
    ("plain", Kind::Plain),
    ("biz_id", Kind::BizId),
    ("result", Kind::Result),
    ("delay", Kind::Delayed { ms: 1 }),
    ("retry", Kind::FailsOnce),
];

/// The values whose difference to the plain path is shown, and the name of each difference.
const OVER_PLAIN: [(Field, Field); 3] = [
    (Field::RedisCpuUsWholeLife, Field::RedisUsOverPlain),
    (Field::ClientCpuUsPerTask, Field::ClientUsOverPlain),
    (Field::WorkerCpuUsPerTask, Field::WorkerUsOverPlain),
];

fn features(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let tasks = bench.scale.tasks(100_000);
    let shown = |feature: &str| -> Params {
        params([
            ("feature", feature.into()),
            ("in_flight", IN_FLIGHT.into()),
            ("tasks", tasks.into()),
        ])
    };
    // Each run measures all kinds, so that each kind is compared with a plain task of the same
    // minute.
    let mut samples: [Vec<Sample>; KINDS.len()] = Default::default();
    for run in 1..=bench.scale.runs {
        let mut plain: Option<Sample> = None;
        for (of_kind, (name, kind)) in samples.iter_mut().zip(KINDS) {
            progress(FEATURES.name, &shown(name), &format!("run {run} of {}", bench.scale.runs));
            let drain = Drain { kind, ..Drain::plain(tasks, Staff::one(IN_FLIGHT)) };
            let sample = drain.run(bench)?;
            of_kind.push(match &plain {
                Some(plain) => over(sample, plain),
                None => sample.clone(),
            });
            plain.get_or_insert_with(|| of_kind[of_kind.len() - 1].clone());
        }
    }
    let rows = samples.iter().zip(KINDS);
    Ok(rows.map(|(of_kind, (name, _))| Row::of_runs(FEATURES.name, shown(name), of_kind)).collect())
}

fn over(sample: Sample, plain: &Sample) -> Sample {
    OVER_PLAIN.iter().fold(sample, |sample, (value, difference)| {
        let known = sample.get(*value).zip(plain.get(*value));
        sample.with_known(*difference, known.map(|(with, without)| with - without))
    })
}
