//! Checks the sources: whether somebody scans them, whether they are paused, or slow because their
//! tasks fail.

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{Error, SourceDetails};

use super::{Finding, shards::lost_since};
use crate::{
    advice::advice,
    failure::Failure,
    output::text,
    session::{REQUESTS_MAX, Session},
};

/// Checks all sources.
pub(crate) async fn check(session: &Session<'_>) -> Result<Vec<Finding>, Failure> {
    let (now, names) = (session.now().await?, session.client.sources().await?);
    let looks = names.into_iter().map(|name| async move {
        Ok::<_, Error>(of_source(&session.client.source(&name).look().await?, now))
    });
    let found: Vec<_> = stream::iter(looks).buffered(REQUESTS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

fn of_source(source: &SourceDetails, now: DateTime<Utc>) -> Option<Finding> {
    let name = &source.name;
    if let Some(shut) = &source.paused {
        let (what, end) = (format!("source {name}"), advice("source resume", [name]));
        return Some(Finding::paused("sources", &what, shut, &end));
    }
    if let Some(ended) = lost_since(&source.workers) {
        let text = format!(
            "source {name}: nobody scans it: the lease of its last worker ended {}; start a worker \
             with it, or {} if it is no longer wanted",
            text::relative(ended, now),
            advice("source pause", [name])
        );
        return Some(Finding::warning("sources", text));
    }
    source.slow_since?;
    let text = format!(
        "source {name} reads only a few rows a minute, because {:.0} % of the last attempts at its \
         tasks have failed; `optimus dead fingerprints` lists the errors of those that are dead, \
         and it reads all rows again once more attempts succeed than fail",
        100.0 * source.failed
    );
    Some(Finding::warning("sources", text))
}
