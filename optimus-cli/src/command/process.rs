//! `optimus process`: the processes that run workers, and what they are asked for.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{
    PAGE_MAX, ProcessAnswer, ProcessDetails, RunningTask, TaskId, TaskProgress, WorkerId,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    output::{
        Row, clean,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ProcessCommand {
    /// List the processes: their machine, memory and CPU, and how busy they are.
    List,
    /// Show one process, and the tasks that it runs.
    Show { id: String },
    /// Let a process begin no more tasks. Those that it runs go on.
    Quiet { id: String },
    /// Let a process use all its slots again.
    Resume { id: String },
    /// Let a process run at most this many tasks at once.
    Slots { id: String, count: usize },
    /// End a process as a first signal does. A supervisor may start it again.
    Stop { id: String },
}

/// What it means that a process is lost.
const LOST: &str = "its lease is over: it has died, or does not reach Redis";

/// A process in the list, with what was asked of it.
#[derive(Serialize)]
struct ProcessRow {
    #[serde(flatten)]
    process: ProcessDetails,
    asked: Option<&'static str>,
}

impl ProcessRow {
    fn of(process: ProcessDetails) -> Self {
        let asked = Some(asked_of(&process)).filter(|asked| !asked.is_empty());
        Self { process, asked }
    }
}

impl Row for ProcessRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("PROCESS"),
        Column::text("HOST"),
        Column::number("PID"),
        Column::text("VERSION"),
        Column::number("STARTED"),
        Column::number("BUSY"),
        Column::number("MEMORY"),
        Column::number("CPU"),
        Column::number("SEEN"),
        Column::text("QUEUES"),
        Column::text(""),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let ProcessDetails { id, seen, about, doing, .. } = &self.process;
        vec![
            Cell::new(id.to_string()),
            Cell::new(&about.host),
            Cell::new(about.pid.to_string()),
            Cell::new(&about.version),
            Cell::new(text::relative(about.started, now)),
            Cell::new(format!("{}/{}", doing.busy, doing.slots)),
            Cell::or_dash(doing.rss_bytes.map(text::size)),
            Cell::or_dash(doing.cpu.map(percent)),
            Cell::new(text::relative(*seen, now)),
            Cell::new(about.queues.join(", ")),
            Cell::new(mode(&self.process)).tone(Tone::Warning),
        ]
    }
}

/// Returns how much of one core that is.
pub(crate) fn percent(cores: f64) -> String {
    format!("{:.0} %", 100.0 * cores)
}

/// Says what keeps the process from work: its lease is over, its handlers block it, or what an
/// operator has asked of it.
pub(crate) fn mode(process: &ProcessDetails) -> &'static str {
    match process.doing.blocked_ms {
        _ if process.is_lost => "lost",
        Some(_) => "blocked",
        None => asked_of(process),
    }
}

/// Says what an operator has asked of the process.
fn asked_of(process: &ProcessDetails) -> &'static str {
    match process.doing.slots {
        0 => "quiet",
        slots if slots < process.about.concurrency => "fewer slots",
        _ => "",
    }
}

pub(crate) async fn run(command: ProcessCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        ProcessCommand::List => {
            let rows: Vec<_> = all(session).await?.into_iter().map(ProcessRow::of).collect();
            session.out.rows(&rows, session.now().await?, "No process runs a worker.")?;
            Ok(Exit::Done)
        }
        ProcessCommand::Show { id } => show(session, &id).await,
        ProcessCommand::Quiet { id } => {
            let process = session.client.process(&id.parse()?);
            let answer = session.audited("process.quiet", &id, process.quiet()).await?;
            asked(session, &id, answer, "begins no more tasks").await
        }
        ProcessCommand::Resume { id } => {
            let process = session.client.process(&id.parse()?);
            let answer = session.audited("process.resume", &id, process.resume()).await?;
            asked(session, &id, answer, "uses all its slots").await
        }
        ProcessCommand::Slots { id, count } => {
            let process = session.client.process(&id.parse()?);
            let known = all(session).await?;
            let most = known.iter().find(|process| process.id.as_str() == id);
            let most = most.map_or(count, |process| count.min(process.about.concurrency));
            let target = format_args!("{id} {count}");
            let answer = session.audited("process.slots", target, process.slots(count)).await?;
            asked(session, &id, answer, &format!("uses up to {}", text::count(most as u64, "slot")))
                .await
        }
        ProcessCommand::Stop { id } => {
            let worker: WorkerId = id.parse()?;
            if !all(session).await?.iter().any(|process| process.id == worker) {
                return Err(absent(&id));
            }
            session.consent.ask(&format!("Stop {id}?"))?;
            let process = session.client.process(&worker);
            let answer = session.audited("process.stop", &id, process.stop()).await?;
            asked(session, &id, answer, "ends").await
        }
    }
}

/// Reads all processes.
pub(crate) async fn all(session: &Session<'_>) -> Result<Vec<ProcessDetails>, Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = session.inspector().processes(after.as_ref(), PAGE_MAX).await?;
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

fn absent(id: &str) -> Failure {
    Failure::not_found(format!("no process {id} is there; `optimus process list` has the ids"))
}

async fn asked(
    session: &Session<'_>,
    id: &str,
    answer: ProcessAnswer,
    what: &str,
) -> Result<Exit, Failure> {
    if answer == ProcessAnswer::Absent {
        return Err(absent(id));
    }
    let known = all(session).await?;
    if known.iter().any(|process| process.id.as_str() == id && process.is_lost) {
        session.out.hint(&format!("{LOST}; it obeys only if it comes back"));
    }
    session
        .out
        .done(&json!({ "id": id, "asked": true }), &format!("{id} was asked, and soon {what}"))?;
    Ok(Exit::Done)
}

async fn show(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let (rows, now) = (all(session).await?, session.now().await?);
    let Some(process) = rows.into_iter().find(|process| process.id.as_str() == id) else {
        return Err(absent(id));
    };
    let row = ProcessRow::of(process);
    let ProcessRow { process, asked } = &row;
    let ProcessDetails { seen, about, doing, .. } = process;
    let slots = format!("{} of {} in use", doing.busy, doing.slots);
    let running: Vec<String> =
        doing.running.iter().map(|task| clean::line(&line(task, now))).collect();
    let fields = [
        ("process", Some(id.to_owned())),
        ("name", about.name.clone()),
        ("host", Some(about.host.clone())),
        ("pid", Some(about.pid.to_string())),
        ("version", Some(about.version.clone())),
        ("started", Some(text::instant(about.started, now))),
        ("seen", Some(text::instant(*seen, now))),
        ("lost", process.is_lost.then(|| LOST.to_owned())),
        ("blocked", doing.blocked_ms.map(blocked)),
        ("asked", asked.map(str::to_owned)),
        ("slots", Some(slots)),
        ("memory", doing.rss_bytes.map(text::size)),
        ("cpu", doing.cpu.map(percent)),
        ("queues", Some(about.queues.join(", "))),
        (if process.is_lost { "ran" } else { "runs" }, Some(running.join("\n"))),
    ];
    session.out.fields(&row, &fields)?;
    if doing.busy > doing.running.len() {
        session.out.hint(&format!("the {} that have run longest", doing.running.len()));
    }
    Ok(Exit::Done)
}

fn blocked(ms: u64) -> String {
    let time = text::duration(Duration::from_millis(ms));
    format!("its handlers have blocked all threads of the runtime for {time}")
}

fn line(task: &RunningTask, now: DateTime<Utc>) -> String {
    let time = text::duration(text::since(task.since, now));
    let line = format!("{}  {}  attempt {}  {time}", task.id, task.task, task.attempt);
    let late = task.late_ms.map(Duration::from_millis);
    let late = late.map(|late| format!("{} after its timeout", text::duration(late)));
    [Some(line), late, task.progress.as_ref().map(progress_text)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("  ")
}

/// Returns how far a task has come, as its handler says.
pub(crate) fn progress_text(progress: &TaskProgress) -> String {
    format!("{} {}", percent(progress.part), progress.text).trim_end().to_owned()
}

/// Returns what a process says of the latest attempt at a task; `None` if no process runs it.
pub(crate) async fn running(
    session: &Session<'_>,
    id: &TaskId,
) -> Result<Option<RunningTask>, Failure> {
    Ok(ProcessDetails::latest_attempt(&all(session).await?, id).cloned())
}
