//! Finds out which limits and pauses let no task start.

use futures_util::future::try_join_all;

use crate::{
    broker::{Broker, BrokerError},
    gate::Gate,
    id::QueueName,
    limit::{Limit, LimitDetails},
    obstacle::Obstacle,
    platform::instant,
    record::TaskRecord,
};

/// The gates of a task, each with the limit that the task has brought.
pub(crate) fn gates_of(
    record: Option<&TaskRecord>,
    lane: Option<&str>,
) -> Vec<(Gate, Option<Limit>)> {
    let mut gates = vec![Gate::Queue];
    let Some(record) = record else { return vec![(Gate::Queue, None)] };
    gates.push(Gate::Task(record.task.clone()));
    gates.extend(lane.map(|key| Gate::Lane(key.to_owned())));
    let others = record.limits.iter().map(|limit| &limit.gate);
    gates.extend(others.filter(|gate| matches!(gate, Gate::Named(_))).cloned());
    let brought = |gate: &Gate| record.limits.iter().find(|limit| limit.gate == *gate);
    let with_limit = |gate: Gate| {
        let limit = brought(&gate).map(|found| found.limit);
        (gate, limit)
    };
    gates.into_iter().map(with_limit).collect()
}

/// Reads these gates.
pub(crate) async fn read_gates(
    broker: &Broker,
    queue: &QueueName,
    gates: Vec<(Gate, Option<Limit>)>,
) -> Result<Vec<LimitDetails>, BrokerError> {
    let reads = gates.iter().map(|(gate, limit)| broker.limit_known(queue, gate, *limit));
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

/// Those of these gates that let no task start now, or not one that counts as so many starts.
pub(crate) fn of_gates(gates: Vec<LimitDetails>, cost: u32, now_ms: u64) -> Vec<Obstacle> {
    let of_gate = |gate: LimitDetails| {
        let costly = of_cost(&gate, cost, now_ms);
        let shut = is_shut(&gate).then_some(Obstacle::Limit(gate));
        shut.into_iter().chain(costly)
    };
    gates.into_iter().flat_map(of_gate).collect()
}

fn is_shut(gate: &LimitDetails) -> bool {
    let is_full = |most| gate.working >= u64::from(most);
    gate.shut.is_some()
        || gate.tokens == Some(0)
        || gate.limit.max_working_limit().is_some_and(is_full)
        || gate.waiting > 0
}

/// A rate that lets a task start, but not one that counts as so many starts.
fn of_cost(limit: &LimitDetails, cost: u32, now_ms: u64) -> Option<Obstacle> {
    let (rate, tokens) = (limit.limit.rate_limit()?, limit.tokens.filter(|tokens| *tokens > 0)?);
    // A claim counts it as the burst at most.
    let cost = cost.min(limit.limit.burst_limit());
    let missing = u64::from(cost).checked_sub(tokens).filter(|missing| *missing > 0)?;
    let wait_ms = rate.interval_us().saturating_mul(missing).div_ceil(1_000);
    let by = instant(now_ms.saturating_add(wait_ms));
    Some(Obstacle::Costly { gate: limit.gate.clone(), cost, tokens, by })
}
