//! Checks a namespace without a queue: its name may be misspelt.

use super::Finding;
use crate::{
    command::namespace,
    failure::{Exit, Failure},
    output::text,
    session::Session,
};

/// About how many keys are looked at to name other namespaces: a fraction of a second.
const KEYS_MAX: u64 = 100_000;

/// Looks at a namespace in which no queue is in use. One with shards, sources or dispensers needs
/// no queue, and one with processes has the right name. Any other one is a warning: otherwise a
/// check of the wrong name would always pass.
pub(super) async fn check(session: &Session<'_>) -> Result<Finding, Failure> {
    let client = &session.client;
    let has_others = session.inspector().processes(None, 1).await?.total > 0
        || !client.shard_names().await?.is_empty()
        || !client.sources().await?.is_empty()
        || !client.dispenser_names().await?.is_empty();
    if has_others {
        return Ok(Finding::note("queues", "no task was submitted to this namespace"));
    }
    let text = format!(
        "namespace {}: no task was submitted to it lately, and no worker serves it; is its name \
         misspelt? {}",
        client.broker().namespace(),
        others(session).await?
    );
    Ok(Finding::warning("queues", text))
}

/// Names the namespaces that have queues.
async fn others(session: &Session<'_>) -> Result<String, Failure> {
    let scanned = match namespace::scan(session, KEYS_MAX).await {
        Ok(scanned) => scanned,
        Err(problem) if problem.exit == Exit::Unreachable => return Err(problem),
        // A user of Redis that may not scan still learns that nothing is there.
        Err(_) => return Ok("`optimus namespace list` lists those that have queues".to_owned()),
    };
    let (looked, is_whole) = (scanned.looked, scanned.is_whole);
    let mut found = scanned.with_queues();
    // Its keys may be there without a queue in the list of queues.
    found.retain(|name| name != session.client.broker().namespace());
    let said = match text::known(&found, "") {
        none if none.is_empty() => "no other one has a queue".to_owned(),
        known => known.replacen("there are: ", "Those with queues are: ", 1),
    };
    if is_whole {
        return Ok(said);
    }
    let looked = text::count(looked, "key");
    Ok(format!("{said}, of the first {looked}; `optimus namespace list` looks at more"))
}
