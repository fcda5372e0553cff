//! The server, and whether it is fit for tasks.

use axum::Json;
use optimus_core::ServerFacts;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    problem::{ErrorBody, Problem},
    seat::Seat,
    view::Fact,
};

/// Above this part of the memory, in percent, Redis may soon refuse submits.
const MEMORY_MAX: u64 = 80;

/// The server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RedisPage {
    facts: Vec<Fact>,
    checks: Vec<CheckRow>,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckRow {
    /// `ok`, `note`, `warning` or `problem`.
    level: &'static str,
    text: String,
}

impl CheckRow {
    fn new(level: &'static str, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }
}

/// Shows the server, and what its configuration means for tasks.
#[utoipa::path(get, path = "/api/v1/redis", tag = "look", responses(
    (status = 200, body = RedisPage), (status = 503, body = ErrorBody)))]
pub(crate) async fn redis(seat: Seat) -> Result<Json<RedisPage>, Problem> {
    let facts = seat.inspector().server().await?;
    Ok(Json(RedisPage { facts: rows(&facts), checks: checks(&facts) }))
}

fn rows(facts: &ServerFacts) -> Vec<Fact> {
    let word = |is: bool| if is { "yes" } else { "no" };
    [
        Fact::of("version", facts.version.as_ref()),
        Fact::of("maxmemory-policy", facts.maxmemory_policy.as_ref()),
        Fact::of("appendonly", facts.appendonly.map(word)),
        Fact::of("appendfsync", facts.appendfsync.as_ref()),
        Fact::of("save", facts.save.as_ref()),
        Fact::of("replica", facts.is_replica.map(word)),
        Fact::of("replicas", facts.replicas),
        Fact::of("used_bytes", facts.used_memory),
        Fact::of("max_bytes", facts.maxmemory),
        Fact::of("system_bytes", facts.system_memory),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn checks(facts: &ServerFacts) -> Vec<CheckRow> {
    let mut checks: Vec<CheckRow> = Vec::new();
    checks.extend(facts.refusal().map(|why| CheckRow::new("problem", why)));
    checks.extend(facts.warnings().into_iter().map(|why| CheckRow::new("problem", why)));
    checks.push(match facts.without_persistence() {
        Some(loss) => CheckRow::new("warning", loss),
        None => CheckRow::new("ok", facts.promise()),
    });
    checks.extend(facts.failover().map(|loss| CheckRow::new("note", loss)));
    checks.extend(memory(facts));
    if facts.is_append_failing == Some(true) {
        let text = "the last write to the append-only file has failed, so Redis refuses writes: \
            look for a full disk, and at Redis' log";
        checks.push(CheckRow::new("problem", text));
    }
    if facts.is_snapshot_failing == Some(true) {
        let text = "the last snapshot has failed, and Redis may refuse writes because of it: look \
            for a full disk, and at Redis' log";
        checks.push(CheckRow::new("problem", text));
    }
    checks
}

fn memory(facts: &ServerFacts) -> Option<CheckRow> {
    let used = facts.used_memory?;
    let limit = facts.maxmemory.filter(|max| *max > 0).or(facts.system_memory)?;
    let percent = u128::from(used) * 100 / u128::from(limit.max(1));
    Some(if percent >= u128::from(MEMORY_MAX) {
        let text = format!(
            "{percent} % of the memory is in use; submits are refused when it is full, while \
             workers still drain it. Add workers or memory."
        );
        CheckRow::new("warning", text)
    } else {
        CheckRow::new("ok", format!("{percent} % of the memory is in use"))
    })
}
