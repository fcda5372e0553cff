//! The context of every measurement: the Redis, the scale, and the repetition of a run.

use anyhow::Context as _;

use crate::bench_redis::BenchRedis;
use crate::field::Sample;
use crate::row::{Params, Row};
use crate::scale::Scale;

/// One run of the whole program.
pub(crate) struct Bench {
    pub(crate) redis: BenchRedis,
    pub(crate) scale: Scale,
}

impl Bench {
    /// Runs a measurement as often as the scale requires. Returns its row.
    ///
    /// # Errors
    ///
    /// When a run fails.
    pub(crate) fn repeat(
        &self,
        name: &'static str,
        params: Params,
        mut measure: impl FnMut() -> anyhow::Result<Sample>,
    ) -> anyhow::Result<Row> {
        let mut samples = Vec::new();
        for run in 1..=self.scale.runs {
            progress(name, &params, &format!("run {run} of {}", self.scale.runs));
            let sample = measure();
            samples.push(sample.with_context(|| format!("{name} {}", describe(&params)))?);
        }
        Ok(Row::of_runs(name, params, &samples))
    }
}

/// Prints the progress.
pub(crate) fn progress(name: &str, params: &Params, what: &str) {
    eprintln!("  {name} {}: {what}", describe(params));
}

/// Returns a text such as `in_flight=100 processes=1`.
pub(crate) fn describe(params: &Params) -> String {
    let pairs = params.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}
