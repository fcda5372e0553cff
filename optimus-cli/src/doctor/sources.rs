//! Checks the sources: whether somebody scans them, whether they are paused, slow because their
//! tasks fail, or can't be read.

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{Error, SliceDetails, SourceDetails};

use super::{Finding, shards::lost_since};
use crate::{
    advice::advice,
    failure::Failure,
    output::{clean, text},
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
    if let Some(failed) = failing(source) {
        return Some(failed);
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

/// Says that pages can't be read, so that rows get no tasks.
fn failing(source: &SourceDetails) -> Option<Finding> {
    let is_failing = |slice: &&SliceDetails| !slice.scans.error.is_empty();
    let mut failing = source.slices.iter().filter(is_failing);
    let (name, first) = (&source.name, failing.next()?);
    let text = format!(
        "source {name}: the last page of {} failed, so rows may get no tasks: {}; {} has more",
        text::count(1 + failing.count() as u64, "slice"),
        clean::line(&first.scans.error),
        advice("source show", [name])
    );
    Some(Finding::warning("sources", text))
}
