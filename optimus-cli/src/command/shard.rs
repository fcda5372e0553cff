//! `optimus shard`: the shards of `#[sharded]` functions.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{ShardDetails, ShardFailure, ShardsDetails, Shut, Value};
use serde::Serialize;
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    pause::Pause,
    session::{REQUESTS_MAX, Session},
};

/// How many shards a sentence names.
const SHOWN_MAX: usize = 10;

#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// List the sharded functions that workers have served.
    List,
    /// Show who holds which shard, since when, and how far each has come.
    Show { name: String },
    /// Stop one shard, or all. Its holder ends its round first.
    Pause {
        name: String,
        /// The number of the shard [default: all].
        index: Option<u16>,
    },
    /// End the pause of one shard, or all pauses.
    Resume {
        name: String,
        /// The number of the shard [default: all].
        index: Option<u16>,
    },
    /// Set how many shards there are, while workers run. The pauses of single shards end.
    Count {
        name: String,
        #[arg(value_parser = clap::value_parser!(u16).range(1..))]
        count: u16,
    },
    /// Forget all positions, so that a pass over all data begins.
    Restart { name: String },
}

impl ShardCommand {
    /// Returns the function that the command changes.
    fn changes(&self) -> Option<&str> {
        match self {
            Self::List | Self::Show { .. } => None,
            Self::Pause { name, .. }
            | Self::Resume { name, .. }
            | Self::Count { name, .. }
            | Self::Restart { name } => Some(name),
        }
    }
}

#[derive(Debug, Serialize)]
struct FunctionRow {
    name: String,
    shards: u16,
    held: usize,
    workers: usize,
    paused: bool,
}

impl Row for FunctionRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("FUNCTION"),
        Column::number("SHARDS"),
        Column::number("HELD"),
        Column::number("WORKERS"),
        Column::text(""),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(&self.name),
            Cell::number(u64::from(self.shards)),
            Cell::number(self.held as u64),
            Cell::number(self.workers as u64),
            Cell::new(if self.paused { "paused" } else { "" }).tone(Tone::Warning),
        ]
    }
}

#[derive(Debug, Serialize)]
struct ShardRow {
    shard: u16,
    worker: Option<String>,
    host: Option<String>,
    /// Whether the lease of the worker is over.
    lost: bool,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds_option")]
    since: Option<DateTime<Utc>>,
    fence: Option<u64>,
    position: Option<Value>,
    has_ended: bool,
    /// Its last rounds, if they have failed.
    failing: Option<Failing>,
    paused: bool,
    pause: Option<Pause>,
}

/// How often the rounds of a shard have failed in a row, when last, and why.
#[derive(Debug, Serialize)]
struct Failing {
    failures: u32,
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
    message: String,
}

impl Failing {
    fn of(failure: &ShardFailure) -> Self {
        let ShardFailure { failures, at, error, .. } = failure.clone();
        Self { failures, at, message: error }
    }
}

impl ShardRow {
    fn of(shard: &ShardDetails, all: Option<&Shut>) -> Self {
        let holder = shard.holder.as_ref();
        Self {
            shard: shard.index,
            worker: holder.map(|holder| holder.worker.to_string()),
            host: holder.map(|holder| holder.host.clone()),
            lost: holder.is_some_and(|holder| holder.is_lost),
            since: holder.map(|holder| holder.since),
            fence: holder.map(|holder| holder.fence),
            position: shard.position.clone(),
            has_ended: shard.has_ended,
            failing: holder.and_then(|holder| holder.failing.as_ref()).map(Failing::of),
            paused: shard.paused.is_some() || all.is_some(),
            pause: shard.paused.as_ref().or(all).map(Pause::of),
        }
    }
}

impl Row for ShardRow {
    const COLUMNS: &'static [Column] = &[
        Column::number("SHARD"),
        Column::text("WORKER"),
        Column::number("SINCE"),
        Column::text("STATE"),
        Column::text("POSITION"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let failing = self.failing.as_ref().filter(|_| !self.paused && !self.lost);
        let failing = failing.map(|failing| {
            let (times, at) = (failing.failures, text::relative(failing.at, now));
            let text = format!("failed {times} times, last {at}: {}", failing.message);
            Cell::new(text).tone(Tone::Warning)
        });
        let state = failing.unwrap_or_else(|| match (&self.pause, self.has_ended, &self.worker) {
            (Some(pause), _, _) => Cell::new(pause.at(now)).tone(Tone::Warning),
            (None, true, _) => Cell::new("ended").tone(Tone::Pale),
            (None, false, Some(_)) if self.lost => Cell::new("lost").tone(Tone::Bad),
            (None, false, Some(_)) => Cell::new("held").tone(Tone::Good),
            (None, false, None) => Cell::new("free").tone(Tone::Warning),
        });
        vec![
            Cell::new(self.shard.to_string()),
            Cell::or_dash(self.worker.clone()),
            Cell::or_dash(self.since.map(|since| text::relative(since, now))),
            state,
            Cell::or_dash(self.position.as_ref().map(ToString::to_string)),
        ]
    }
}

pub(crate) async fn run(command: ShardCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    if let Some(name) = command.changes() {
        check_name(session, name).await?;
    }
    match command {
        ShardCommand::List => list(session).await,
        ShardCommand::Show { name } => show(session, &name).await,
        ShardCommand::Pause { name, index } => {
            let shards = session.client.shards(&name).because(&session.by, &session.reason);
            let pausing = async {
                match index {
                    Some(index) => shards.pause(index).await,
                    None => Ok(shards.pause_all().await?.is_changed),
                }
            };
            let is_new = session.audited("shards.pause", target(&name, index), pausing).await?;
            let done = if is_new { "paused" } else { "paused already" };
            changed(session, &name, index, done)
        }
        ShardCommand::Resume { name, index } => {
            let shards = session.client.shards(&name);
            let resuming = async {
                match index {
                    Some(index) => shards.resume_one(index).await,
                    None => Ok(shards.resume().await?.is_changed),
                }
            };
            let target = target(&name, index);
            let was_paused = session.audited("shards.resume", target, resuming).await?;
            changed(session, &name, index, if was_paused { "resumed" } else { "not paused" })
        }
        ShardCommand::Count { name, count } => recount(session, &name, count).await,
        ShardCommand::Restart { name } => {
            session.consent.ask(&format!("Forget all positions of {name}, and begin again?"))?;
            let shards = session.client.shards(&name);
            session.audited("shards.restart", &name, shards.restart()).await?;
            changed(session, &name, None, "restarted")
        }
    }
}

/// Sets how many shards there are, and says which pauses end with that.
async fn recount(session: &Session<'_>, name: &str, count: u16) -> Result<Exit, Failure> {
    let shards = session.client.shards(name);
    let found = shards.look().await?;
    let is_paused = |shard: &&ShardDetails| shard.paused.is_some() && found.count != count;
    let single: Vec<u16> = found.shards.iter().filter(is_paused).map(|shard| shard.index).collect();
    let pauses = pauses(&single);
    let ends = pauses.as_ref().map_or_else(String::new, |pauses| {
        format!(" This ends {pauses}: a number belongs to other rows then.")
    });
    session.consent.ask(&format!(
        "Change the shards of {name} to {count}? Holders give theirs back first.{ends}"
    ))?;
    let target = format!("{name} {count}");
    let before = session.audited("shards.count", target, shards.set_count(count)).await?;
    let object = json!({ "name": name, "count": count, "before": before, "resumed": single });
    let ended = pauses.map_or_else(String::new, |pauses| format!("; this has ended {pauses}"));
    session.out.done(&object, &format!("{name} has {count} shards; it had {before}{ended}"))?;
    Ok(Exit::Done)
}

/// Names the pauses of these shards.
fn pauses(shards: &[u16]) -> Option<String> {
    let numbers: Vec<String> = shards.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    let more = if numbers.len() < shards.len() { ", …" } else { "" };
    match &numbers[..] {
        [] => None,
        [one] => Some(format!("the pause of shard {one}")),
        _ => {
            let count = text::count(shards.len() as u64, "shard");
            Some(format!("the pauses of {count} ({}{more})", numbers.join(", ")))
        }
    }
}

fn target(name: &str, index: Option<u16>) -> String {
    index.map_or_else(|| name.to_owned(), |index| format!("{name} {index}"))
}

/// Refuses a name that no worker has served, before anything is asked or changed.
async fn check_name(session: &Session<'_>, name: &str) -> Result<(), Failure> {
    let known = session.client.shard_names().await?;
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let known = text::known(&known, "no worker has served a sharded function");
    Err(Failure::not_found(format!("no worker has ever served the shards of {name}; {known}")))
}

fn changed(
    session: &Session<'_>,
    name: &str,
    index: Option<u16>,
    done: &str,
) -> Result<Exit, Failure> {
    let object = json!({ "name": name, "shard": index, "done": done });
    let sentence = match index {
        Some(index) => format!("shard {index} of {name} is {done}"),
        None => format!("the shards of {name} are {done}"),
    };
    session.out.done(&object, &sentence)?;
    Ok(Exit::Done)
}

async fn list(session: &Session<'_>) -> Result<Exit, Failure> {
    let (now, names) = (session.now().await?, session.client.shard_names().await?);
    let looks = names.into_iter().map(|name| async move {
        let found = session.client.shards(&name).look().await?;
        Ok::<_, optimus_core::Error>(FunctionRow {
            name,
            shards: found.count,
            held: found.shards.iter().filter(|shard| is_held(shard)).count(),
            workers: found.workers.iter().filter(|worker| !worker.is_lost).count(),
            paused: found.paused.is_some(),
        })
    });
    let rows: Vec<FunctionRow> = stream::iter(looks).buffered(REQUESTS_MAX).try_collect().await?;
    session.out.rows(&rows, now, "No worker has served a sharded function.")?;
    Ok(Exit::Done)
}

fn is_held(shard: &ShardDetails) -> bool {
    shard.holder.as_ref().is_some_and(|holder| !holder.is_lost)
}

async fn show(session: &Session<'_>, name: &str) -> Result<Exit, Failure> {
    let (now, found) = (session.now().await?, session.client.shards(name).look().await?);
    let ShardsDetails { count, shards, paused, old, .. } = &found;
    if *count == 0 {
        return Err(Failure::not_found(format!(
            "no worker has ever served the shards of {name}; `optimus shard list` has the names"
        )));
    }
    let rows: Vec<ShardRow> =
        shards.iter().map(|shard| ShardRow::of(shard, paused.as_ref())).collect();
    session.out.rows(&rows, now, "There is no shard.")?;
    if !old.is_empty() {
        let old = text::count(old.len() as u64, "shard");
        session
            .out
            .hint(&format!("{old} of an earlier count is not given back yet; the new ones wait"));
    }
    Ok(Exit::Done)
}
