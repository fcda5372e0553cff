//! What belongs to no queue: sharded functions, sources and dispensers.

use axum::Json;
use optimus_core::{DispenserDetails, ShardDetails, ShardsDetails, SourceDetails};
use serde::Deserialize;
use utoipa::IntoParams;

use super::more_row;
use crate::{
    access::Payloads,
    api::page::Page,
    problem::{ErrorBody, Problem},
    seat::{Asked, Seat},
    view::{Fact, ThingRow, beginning_shown, kept, pause_shown},
};

/// How many functions, sources or dispensers are listed.
const NAMES_MAX: usize = 100;
/// How many slices of a source are told apart.
const SLICES_MAX: usize = 32;

/// Lists sharded functions.
#[utoipa::path(get, path = "/api/v1/shards", tag = "things", responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn shards(seat: Seat) -> Result<Json<Page<ThingRow>>, Problem> {
    seat.sees_all("sharded functions")?;
    let names = seat.app.client.shard_names().await?;
    let mut rows = Vec::new();
    let more = more_of(&names, "sharded functions", "shard list");
    for name in names.into_iter().take(NAMES_MAX) {
        rows.push(shards_row(&seat.app.client.shards(name).look().await?, seat.payloads()));
    }
    rows.extend(more);
    Ok(Json(Page::new(rows, None)))
}

/// Says how many of these names are listed, if not all are.
fn more_of(names: &[String], things: &str, command: &str) -> Option<ThingRow> {
    let count = names.len();
    let state = format!(
        "{NAMES_MAX} of {count} {things} are listed; `optimus {command}` lists all of them"
    );
    (count > NAMES_MAX).then(|| more_row(None, state))
}

fn shards_row(found: &ShardsDetails, payloads: Payloads) -> ThingRow {
    let paused = found.paused.as_ref().map(|shut| pause_shown(shut, payloads).to_string());
    let held = |shard: &&ShardDetails| shard.holder.as_ref().is_some_and(|by| !by.is_lost);
    let held = found.shards.iter().filter(held).count();
    let each = found.shards.iter().take(SLICES_MAX).filter_map(|shard| {
        let holder = shard.holder.as_ref()?;
        let text = format!("{} on {}", holder.worker, holder.host);
        Some(Fact::new(&format!("shard {}", shard.index), text))
    });
    let facts = [
        Fact::new("shards", found.count),
        Fact::new("held", held),
        Fact::new("workers", found.workers.iter().filter(|worker| !worker.is_lost).count()),
        Fact::new("generation", found.generation),
    ];
    ThingRow {
        title: found.name.clone(),
        name: found.name.clone(),
        queue: None,
        state: paused.unwrap_or_else(|| "active".to_owned()),
        facts: facts.into_iter().chain(each).collect(),
        acts: vec![if found.paused.is_some() { "resume" } else { "pause" }],
    }
}

/// Lists sources.
#[utoipa::path(get, path = "/api/v1/sources", tag = "things", responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn sources(seat: Seat) -> Result<Json<Page<ThingRow>>, Problem> {
    let payloads = seat.payloads();
    seat.sees_all("sources")?;
    let names = seat.app.client.sources().await?;
    let mut rows = Vec::new();
    let more = more_of(&names, "sources", "source list");
    for name in names.into_iter().take(NAMES_MAX) {
        rows.push(source_row(&seat.app.client.source(name).look().await?, payloads));
    }
    rows.extend(more);
    Ok(Json(Page::new(rows, None)))
}

fn source_row(found: &SourceDetails, payloads: Payloads) -> ThingRow {
    let sum = |of: fn(&optimus_core::SliceScans) -> u64| -> u64 {
        found.slices.iter().map(|slice| of(&slice.scans)).sum()
    };
    let state = match (&found.paused, found.slow_since) {
        (Some(shut), _) => pause_shown(shut, payloads).to_string(),
        (None, Some(_)) => "reads only probes, because its tasks fail".to_owned(),
        (None, None) => "active".to_owned(),
    };
    let problems = found.slices.iter().take(SLICES_MAX).filter_map(|slice| {
        let scans = &slice.scans;
        let text = [&scans.error, &scans.refusal].into_iter().find(|text| !text.is_empty())?;
        Some(Fact::new(
            &format!("slice {}", slice.index),
            beginning_shown(text, kept::SOURCE, payloads),
        ))
    });
    let facts = [
        Fact::new("slices", found.slices.len()),
        Fact::new("workers", found.workers.iter().filter(|worker| !worker.is_lost).count()),
        Fact::new("rows read", sum(|scans| scans.rows)),
        Fact::new("tasks submitted", sum(|scans| scans.submitted)),
        Fact::new("pages failed", sum(|scans| scans.failed)),
        Fact::new("attempts failed", format!("{:.0} %", 100.0 * found.failed)),
    ];
    ThingRow {
        title: found.name.clone(),
        name: found.name.clone(),
        queue: None,
        state,
        facts: facts.into_iter().chain(problems).collect(),
        acts: vec![if found.paused.is_some() { "resume" } else { "pause" }, "run_now"],
    }
}

/// Which dispensers.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DispensersOf {
    /// The names, with commas between them. Without it, all that have items or were used within a
    /// day, 100 a page.
    name: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Lists dispensers.
#[utoipa::path(get, path = "/api/v1/dispensers", tag = "things", params(DispensersOf), responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn dispensers(
    seat: Seat,
    Asked(asked): Asked<DispensersOf>,
) -> Result<Json<Page<ThingRow>>, Problem> {
    seat.sees_all("dispensers")?;
    let wanted: Vec<String> = match &asked.name {
        Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        None => seat.app.client.dispenser_names().await?,
    };
    let after = asked.after.as_deref().unwrap_or_default();
    let is_next = |name: &String| asked.name.is_some() || name.as_str() > after;
    let mut names = wanted.into_iter().filter(|name| !name.is_empty()).filter(is_next);
    let mut rows: Vec<ThingRow> = Vec::new();
    for name in names.by_ref().take(NAMES_MAX) {
        match seat.app.client.dispenser(&name).peek().await {
            Ok(found) => rows.push(dispenser_row(&name, &found)),
            Err(problem) if asked.name.is_some() => return Err(problem.into()),
            // One that can't be read hides no other.
            Err(problem) => rows.push(unreadable(&name, &problem.to_string())),
        }
    }
    let has_more = asked.name.is_none() && names.next().is_some();
    let next = rows.last().filter(|_| has_more).map(|row| row.name.clone());
    Ok(Json(Page::new(rows, next)))
}

fn unreadable(name: &str, problem: &str) -> ThingRow {
    ThingRow {
        title: name.to_owned(),
        name: name.to_owned(),
        queue: None,
        state: format!("can't be read: {problem}"),
        facts: Vec::new(),
        acts: Vec::new(),
    }
}

fn dispenser_row(name: &str, found: &DispenserDetails) -> ThingRow {
    let waits = found.first_waits.map(|waits| format!("{} s", waits.as_secs()));
    let state = if found.is_rebuilding { "is rebuilt" } else { "active" };
    ThingRow {
        title: name.to_owned(),
        name: name.to_owned(),
        queue: None,
        state: state.to_owned(),
        facts: [
            Some(Fact::new("open", found.open)),
            Some(Fact::new("assigned", found.assigned)),
            Some(Fact::new("assignees", found.assignees)),
            Fact::of("first waits", waits),
        ]
        .into_iter()
        .flatten()
        .collect(),
        acts: Vec::new(),
    }
}
