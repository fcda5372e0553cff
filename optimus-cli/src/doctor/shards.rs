//! Checks the shards of `#[sharded]` functions: whether they are paused, and whether their rounds
//! fail.

use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{Error, ShardFailure, ShardHolder, ShardsDetails};

use super::Finding;
use crate::{
    advice::advice,
    failure::Failure,
    output::text,
    session::{REQUESTS_MAX, Session},
};

/// One failed round may be chance, and the next one begins after a second.
const FAILURES_MIN: u32 = 3;

/// Checks all functions.
pub(crate) async fn check(session: &Session<'_>) -> Result<Vec<Finding>, Failure> {
    let names = session.client.shard_names().await?;
    let looks = names.into_iter().map(|name| async move {
        let shards = session.client.shards(&name).look().await?;
        let what = format!("function {name}");
        let paused = shards.paused.as_ref().map(|shut| Finding::paused("shards", &what, shut));
        Ok::<_, Error>(paused.into_iter().chain(failing(&shards)))
    });
    let found: Vec<_> = stream::iter(looks).buffered(REQUESTS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

fn failing(shards: &ShardsDetails) -> Option<Finding> {
    let holders = shards.shards.iter().filter_map(|shard| shard.holder.as_ref());
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
