//! The measurements, one group in each file.

mod added;
mod connections;
mod dependencies;
mod dispenser;
mod drain;
mod due;
mod explain;
mod features;
mod gathers;
mod groups;
mod growth;
mod idle;
mod instructions;
mod lanes;
mod latency;
mod life;
mod limits;
mod memory;
mod one_drain;
mod plain;
mod queues;
mod redis_instructions;
mod result_waits;
mod retry;
mod schedules;
mod script_time;
mod steady;
mod submit;
mod used_queue;

pub(crate) use submit::RETURN_ONE;

use crate::bench::Bench;
use crate::row::Row;

/// A measurement. The option `--only` uses its name.
pub(crate) struct Measurement {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Bench) -> anyhow::Result<Vec<Row>>,
}

/// The measurements that run only when they are named.
pub(crate) const ON_DEMAND: &[Measurement] = &[
    instructions::INSTRUCTIONS,
    redis_instructions::REDIS_INSTRUCTIONS,
    lanes::LANES,
    dependencies::DEPENDENCIES,
    limits::RATE,
    limits::MAX_WORKING,
    groups::GROUPS,
    gathers::GATHERS,
    retry::RETRY,
    dispenser::DISPENSER,
    script_time::SCRIPT_TIME,
];

/// All other measurements, in the order in which they run.
pub(crate) const USUAL: &[Measurement] = &[
    submit::SEQUENTIAL,
    submit::CONCURRENT,
    submit::BATCHES,
    drain::DRAIN,
    steady::STEADY,
    latency::LATENCY,
    latency::DELAY_PRECISION,
    schedules::SCHEDULES,
    due::DUE,
    features::FEATURES,
    used_queue::USED,
    queues::QUEUES,
    connections::CONNECTIONS,
    result_waits::WAITING,
    growth::GROWTH,
    memory::MEMORY,
    explain::EXPLAIN,
    idle::IDLE,
];
