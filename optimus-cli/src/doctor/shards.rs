//! Checks the shards of `#[sharded]` functions: whether somebody holds them, whether they are
//! paused, and whether their rounds fail.

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{Error, ShardFailure, ShardHolder, ShardWorker, ShardsDetails, Shut};

use super::Finding;
use crate::{
    advice::advice,
    failure::Failure,
    output::text,
    session::{REQUESTS_MAX, Session},
};

/// How many pauses of single shards of a function are told apart.
const PAUSES_MAX: usize = 5;
/// One failed round may be chance, and the next one begins after a second.
const FAILURES_MIN: u32 = 3;

/// Checks all functions.
pub(crate) async fn check(session: &Session<'_>) -> Result<Vec<Finding>, Failure> {
    let (now, names) = (session.now().await?, session.client.shard_names().await?);
    let looks = names.into_iter().map(|name| async move {
        let shards = session.client.shards(&name).look().await?;
        let mut findings = match &shards.paused {
            Some(shut) => vec![paused(&name, shut)],
            None => unheld(&shards, now).into_iter().chain(paused_shards(&shards)).collect(),
        };
        findings.extend(failing(&shards));
        Ok::<_, Error>(findings)
    });
    let found: Vec<_> = stream::iter(looks).buffered(REQUESTS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

fn paused(name: &str, shut: &Shut) -> Finding {
    let end = advice("shard resume", [name]);
    Finding::paused("shards", &format!("function {name}"), shut, &end)
}

/// Finds the pauses of single shards.
fn paused_shards(shards: &ShardsDetails) -> Vec<Finding> {
    let (name, check) = (&shards.name, "shards");
    let single = |(index, shut): (u16, &Shut)| {
        let end = advice("shard resume", [name, &index.to_string()]);
        Finding::paused(check, &format!("shard {index} of {name}"), shut, &end)
    };
    let pauses = shards.shards.iter().filter_map(|one| Some((one.index, one.paused.as_ref()?)));
    let mut findings: Vec<Finding> = pauses.clone().take(PAUSES_MAX).map(single).collect();
    let more = pauses.count() - findings.len();
    if more > 0 {
        let more = text::count(more as u64, "more paused shard");
        let end = advice("shard resume", [name]);
        findings.push(Finding::note(check, format!("{more} of {name}: {end} ends all pauses")));
    }
    findings
}

/// Says that all workers of a function have died. A pass that has ended needs none.
fn unheld(shards: &ShardsDetails, now: DateTime<Utc>) -> Option<Finding> {
    let (name, ended) = (&shards.name, lost_since(&shards.workers)?);
    if shards.shards.iter().all(|shard| shard.has_ended) {
        return None;
    }
    let text = format!(
        "function {name}: nobody works on its shards: the lease of its last worker ended {}; start \
         a worker with it, or {} if it is no longer wanted",
        text::relative(ended, now),
        advice("shard pause", [name])
    );
    Some(Finding::warning("shards", text))
}

/// Returns when the last lease ended, if the leases of all workers are over. Workers that have left
/// are not there, and somebody wants that.
pub(super) fn lost_since(workers: &[ShardWorker]) -> Option<DateTime<Utc>> {
    let last = workers.iter().max_by_key(|worker| worker.lease_until)?;
    last.is_lost.then_some(last.lease_until)
}

fn failing(shards: &ShardsDetails) -> Option<Finding> {
    let holders = shards.shards.iter().filter_map(|shard| shard.holder.as_ref());
    let holders = holders.filter(|holder| !holder.is_lost);
    let failures = holders.filter_map(|ShardHolder { failing, .. }| failing.as_ref());
    let failures: Vec<&ShardFailure> =
        failures.filter(|failure| failure.failures >= FAILURES_MIN).collect();
    let last = failures.iter().max_by_key(|failure| failure.at)?;
    let (name, count) = (&shards.name, text::count(failures.len() as u64, "shard"));
    let text = format!(
        "the last rounds of {count} of {name} have failed, with: {}; {}",
        last.error,
        advice("shard show", [name])
    );
    Some(Finding::warning("shards", text))
}
