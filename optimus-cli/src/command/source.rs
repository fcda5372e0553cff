//! `optimus source`: the sources, which find the rows of a database that need a task.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{SliceDetails, SliceScans, SourceDetails};
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

#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// List the sources that workers have served.
    List,
    /// Show who holds which slice, and what each has read.
    Show { name: String },
    /// Stop a source. Tasks that it has submitted still run.
    Pause { name: String },
    /// End the pause of a source.
    Resume { name: String },
    /// Begin a pass over all tables now. A source that is slow reads all rows again.
    Scan { name: String },
    /// Set into how many slices a source is cut, while workers run.
    Slices { name: String, count: u16 },
}

impl SourceCommand {
    /// Returns the source that the command names.
    fn name(&self) -> Option<&str> {
        match self {
            Self::List => None,
            Self::Show { name }
            | Self::Pause { name }
            | Self::Resume { name }
            | Self::Scan { name }
            | Self::Slices { name, .. } => Some(name),
        }
    }
}

#[derive(Debug, Serialize)]
struct SourceRow {
    name: String,
    slices: usize,
    held: usize,
    workers: usize,
    rows: u64,
    submitted: u64,
    pages_failed: u64,
    /// The part of the last attempts of its tasks that has failed, from 0 to 1.
    failed_part: f64,
    #[serde(rename = "slow_since_ms", with = "chrono::serde::ts_milliseconds_option")]
    slow_since: Option<DateTime<Utc>>,
    paused: bool,
    pause: Option<Pause>,
}

impl SourceRow {
    fn of(found: &SourceDetails) -> Self {
        let sum = |of: fn(&SliceScans) -> u64| found.slices.iter().map(|one| of(&one.scans)).sum();
        Self {
            name: found.name.clone(),
            slices: found.slices.len(),
            held: found.slices.iter().filter(|slice| is_held(slice)).count(),
            workers: found.workers.iter().filter(|worker| !worker.is_lost).count(),
            rows: sum(|scans| scans.rows),
            submitted: sum(|scans| scans.submitted),
            pages_failed: sum(|scans| scans.failed),
            failed_part: found.failed,
            slow_since: found.slow_since,
            paused: found.paused.is_some(),
            pause: found.paused.as_ref().map(Pause::of),
        }
    }
}

fn is_held(slice: &SliceDetails) -> bool {
    slice.holder.as_ref().is_some_and(|holder| !holder.is_lost)
}

impl Row for SourceRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("SOURCE"),
        Column::number("SLICES"),
        Column::number("HELD"),
        Column::number("WORKERS"),
        Column::number("ROWS"),
        Column::number("SUBMITTED"),
        Column::number("FAILED PAGES"),
        Column::text(""),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let slow = self.slow_since.map(|since| {
            let percent = 100.0 * self.failed_part;
            format!("slow since {}: {percent:.0} % of attempts fail", text::relative(since, now))
        });
        let state = self.pause.as_ref().map(|pause| pause.at(now)).or(slow);
        vec![
            Cell::new(&self.name),
            Cell::number(self.slices as u64),
            Cell::number(self.held as u64),
            Cell::number(self.workers as u64),
            Cell::number(self.rows),
            Cell::number(self.submitted),
            Cell::number(self.pages_failed),
            Cell::new(state.unwrap_or_default()).tone(Tone::Warning),
        ]
    }
}

#[derive(Debug, Serialize)]
struct SliceRow {
    slice: u16,
    worker: Option<String>,
    host: Option<String>,
    /// Whether the lease of the worker is over.
    lost: bool,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds_option")]
    since: Option<DateTime<Utc>>,
    paused: bool,
    pause: Option<Pause>,
    #[serde(flatten)]
    scans: SliceScans,
}

impl SliceRow {
    fn of(slice: &SliceDetails, source: &SourceDetails) -> Self {
        let holder = slice.holder.as_ref();
        let pause = slice.paused.as_ref().or(source.paused.as_ref());
        Self {
            slice: slice.index,
            worker: holder.map(|holder| holder.worker.to_string()),
            host: holder.map(|holder| holder.host.clone()),
            lost: holder.is_some_and(|holder| holder.is_lost),
            since: holder.map(|holder| holder.since),
            paused: pause.is_some(),
            pause: pause.map(Pause::of),
            scans: slice.scans.clone(),
        }
    }

    /// Returns what went wrong last: with a page, or with a row.
    fn problem(&self) -> Option<&str> {
        let problems = [&self.scans.error, &self.scans.refusal];
        problems.into_iter().map(String::as_str).find(|problem| !problem.is_empty())
    }
}

impl Row for SliceRow {
    const COLUMNS: &'static [Column] = &[
        Column::number("SLICE"),
        Column::text("WORKER"),
        Column::number("READ"),
        Column::number("ROWS"),
        Column::number("SUBMITTED"),
        Column::number("KNOWN"),
        Column::number("GIVEN UP"),
        Column::number("REFUSED"),
        Column::text("STATE"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let state = match (&self.pause, self.problem(), &self.worker) {
            (Some(pause), ..) => Cell::new(pause.at(now)).tone(Tone::Warning),
            (None, ..) if self.lost => Cell::new("lost").tone(Tone::Bad),
            (None, Some(problem), _) => Cell::new(problem).tone(Tone::Warning),
            (None, None, Some(_)) => Cell::new("held").tone(Tone::Good),
            (None, None, None) => Cell::new("free").tone(Tone::Warning),
        };
        vec![
            Cell::new(self.slice.to_string()),
            Cell::or_dash(self.worker.clone()),
            Cell::or_dash(self.scans.at().map(|read| text::relative(read, now))),
            Cell::number(self.scans.rows),
            Cell::number(self.scans.submitted),
            Cell::number(self.scans.known),
            Cell::number(self.scans.given_up),
            Cell::number(self.scans.refused),
            state,
        ]
    }
}

pub(crate) async fn run(command: SourceCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    let Some(name) = command.name() else { return list(session).await };
    check_name(session, name).await?;
    let source = session.client.source(name).because(&session.by, &session.reason);
    match &command {
        SourceCommand::List | SourceCommand::Show { .. } => show(session, name).await,
        SourceCommand::Pause { .. } => {
            let answer = session.audited("source.pause", name, source.pause()).await?;
            let done = if answer.is_changed { "paused" } else { "paused already" };
            changed(session, name, done)
        }
        SourceCommand::Resume { .. } => {
            let answer = session.audited("source.resume", name, source.resume()).await?;
            changed(session, name, if answer.is_changed { "resumed" } else { "not paused" })
        }
        SourceCommand::Scan { .. } => {
            session.audited("source.run_now", name, source.scan_now()).await?;
            changed(session, name, "scanned now")
        }
        SourceCommand::Slices { count, .. } => {
            let question =
                format!("Cut {name} into {count} slices? Holders give theirs back first.");
            session.consent.ask(&question)?;
            let setting = source.set_slices(*count);
            let before =
                session.audited("source.slices", format!("{name} {count}"), setting).await?;
            let object = json!({ "name": name, "count": count, "before": before });
            let sentence = format!("source {name} has {count} slices; it had {before}");
            session.out.done(&object, &sentence)?;
            Ok(Exit::Done)
        }
    }
}

/// Refuses a name that no worker has served, before anything is asked or changed.
async fn check_name(session: &Session<'_>, name: &str) -> Result<(), Failure> {
    let known = session.client.sources().await?;
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let known = text::known(&known, "no worker has served a source");
    Err(Failure::not_found(format!("no worker has ever served source {name}; {known}")))
}

fn changed(session: &Session<'_>, name: &str, done: &str) -> Result<Exit, Failure> {
    let object = json!({ "name": name, "done": done });
    session.out.done(&object, &format!("source {name} is {done}"))?;
    Ok(Exit::Done)
}

async fn list(session: &Session<'_>) -> Result<Exit, Failure> {
    let (now, names) = (session.now().await?, session.client.sources().await?);
    let looks = names.into_iter().map(|name| async move {
        let found = session.client.source(name).look().await?;
        Ok::<_, optimus_core::Error>(SourceRow::of(&found))
    });
    let rows: Vec<SourceRow> = stream::iter(looks).buffered(REQUESTS_MAX).try_collect().await?;
    session.out.rows(&rows, now, "No worker has served a source.")?;
    Ok(Exit::Done)
}

async fn show(session: &Session<'_>, name: &str) -> Result<Exit, Failure> {
    let (now, found) = (session.now().await?, session.client.source(name).look().await?);
    let rows: Vec<SliceRow> = found.slices.iter().map(|one| SliceRow::of(one, &found)).collect();
    session.out.rows(&rows, now, "There is no slice.")?;
    Ok(Exit::Done)
}
