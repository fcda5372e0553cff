//! Measures the floors, which are the cost of the same records in Redis without a queue.

use std::collections::BTreeMap;

use crate::agent::protocol::PAYLOAD_BYTES;
use crate::bench::{Bench, progress};
use crate::field::Spread;
use crate::row::params;

/// The spread of each floor, by the name of the floor, with its unit at the end.
pub(crate) type Floors = BTreeMap<&'static str, Spread>;

const BATCH: u64 = 100;
/// The size of a record without its arguments: a stamp and a header.
const HEADER_BYTES: usize = 22;

/// Measures the processor time of Redis for each command that a queue needs at least: add a record,
/// move it to a worker's list, and remove it.
///
/// # Errors
///
/// When Redis does not reply.
pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Floors> {
    let records = bench.scale.tasks(200_000) / BATCH * BATCH;
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in 1..=bench.scale.runs {
        let shown = params([("records", records.into()), ("batch", BATCH.into())]);
        progress("floor", &shown, &format!("run {run} of {}", bench.scale.runs));
        let [push, shift, remove] = once(bench, records)?;
        found.entry("rpush_us").or_default().push(push);
        found.entry("lmove_us").or_default().push(shift);
        found.entry("lrem_us").or_default().push(remove);
        found.entry("rpush_lmove_lrem_us").or_default().push(push + shift + remove);
    }
    Ok(found.into_iter().filter_map(|(name, us)| Some((name, Spread::of(us)?))).collect())
}

fn once(bench: &Bench, records: u64) -> anyhow::Result<[f64; 3]> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let mut connection = redis::Client::open(redis.url())?.get_connection()?;
    let mut us_of = |command: fn(u64) -> redis::Cmd| -> anyhow::Result<f64> {
        let before = redis.probe().counters()?;
        for batch in 0..records / BATCH {
            let mut pipeline = redis::pipe();
            for number in batch * BATCH..(batch + 1) * BATCH {
                pipeline.add_command(command(number));
            }
            pipeline.query::<Vec<redis::Value>>(&mut connection)?;
        }
        Ok(redis.probe().since(&before)?.cpu_s * 1e6 / records as f64)
    };
    // The list is first in, first out, so each removal finds its record at the head.
    Ok([us_of(rpush)?, us_of(lmove)?, us_of(lrem)?])
}

fn rpush(number: u64) -> redis::Cmd {
    redis::cmd("RPUSH").arg("waiting").arg(record(number)).to_owned()
}

fn lmove(_: u64) -> redis::Cmd {
    redis::cmd("LMOVE").arg(&["waiting", "working", "LEFT", "RIGHT"]).to_owned()
}

fn lrem(number: u64) -> redis::Cmd {
    redis::cmd("LREM").arg("working").arg(1).arg(record(number)).to_owned()
}

fn record(number: u64) -> String {
    format!("{number:x>width$}", width = HEADER_BYTES + PAYLOAD_BYTES)
}
