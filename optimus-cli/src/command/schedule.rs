//! `optimus schedule`: cron and intervals.

use clap::Subcommand;
use optimus_core::{Error, Inspector, PAGE_MAX, QueueName, ScheduleDetails, WorkerDetails};
use serde::Serialize;
use serde_json::json;

use super::schedule_row::{ScheduleRow, TickRow};
use crate::{
    failure::{Exit, Failure},
    output::text,
    queue_names::QueueNames,
    session::Session,
};

/// How many instants are shown, of the past and of the future.
const SHOWN: usize = 5;

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List the schedules of queues.
    List {
        #[command(flatten)]
        queues: QueueNames,
    },
    /// Show a schedule, its next instants, and what became of the last ones.
    Show { name: String },
    /// Print the last 100 instants of a schedule, the latest first.
    History { name: String },
    /// Pause a schedule. It has no instants until it is resumed, whatever a deploy changes.
    Pause { name: String },
    /// End a pause. The instants of the pause are not missed ones.
    Resume { name: String },
    /// Submit its task now. The instants stay as they are.
    RunNow { name: String },
    /// Remove a schedule with its history. One that the code of a worker has returns: pause it.
    Remove { name: String },
}

pub(crate) async fn run(command: ScheduleCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    let schedules = session.client.schedules();
    match command {
        ScheduleCommand::List { queues } => list(session, queues.named()).await,
        ScheduleCommand::Show { name } => show(session, &name).await,
        ScheduleCommand::History { name } => {
            get(session, &name).await?;
            let (now, ticks) = (session.now().await?, schedules.history(&name).await?);
            let rows: Vec<TickRow> = ticks.iter().map(TickRow::of).collect();
            session.out.rows(&rows, now, "It has had no instant.")?;
            Ok(Exit::Done)
        }
        ScheduleCommand::Pause { name } => {
            let pausing = schedules.pause_because(&name, &session.by, &session.reason);
            act(session, "schedule.pause", &name, pausing).await?;
            changed(session, &name, "paused")
        }
        ScheduleCommand::Resume { name } => {
            act(session, "schedule.resume", &name, schedules.resume(&name)).await?;
            changed(session, &name, "resumed")
        }
        ScheduleCommand::RunNow { name } => {
            let submitting =
                async { schedules.run_now(&name).await?.ok_or_else(|| unknown(&name)) };
            let id = session.audited("schedule.run_now", &name, submitting).await?;
            let object = json!({ "schedule": name, "id": id });
            session.out.done(&object, &format!("task {id} was submitted"))?;
            Ok(Exit::Done)
        }
        ScheduleCommand::Remove { name } => {
            let found = get(session, &name).await?;
            if found.release.is_some() {
                session.out.hint(&code_has_it(&found));
            }
            session.consent.ask(&format!("Remove schedule {name} with its history?"))?;
            act(session, "schedule.remove", &name, schedules.remove(&name)).await?;
            changed(session, &name, "removed")
        }
    }
}

/// Does an act that the audit shows; an error if there is no such schedule.
async fn act(
    session: &Session<'_>,
    verb: &str,
    name: &str,
    doing: impl Future<Output = Result<bool, optimus_core::Error>>,
) -> Result<(), Failure> {
    let doing = async { if doing.await? { Ok(()) } else { Err(unknown(name)) } };
    session.audited(verb, name, doing).await
}

/// Says what follows the removal of a schedule that a program's code has.
fn code_has_it(found: &ScheduleDetails) -> String {
    let back = format!(
        "the code of a worker of queue {} has schedule {}, and brings it back within a minute or \
         at its next start",
        found.queue, found.name
    );
    let instead = "remove it from the code";
    if found.paused.is_some() {
        format!("{back}, without its pause, so its tasks run again; leave it paused, or {instead}")
    } else {
        format!("{back}; pause it instead, or {instead}")
    }
}

fn unknown(name: &str) -> Failure {
    Failure::not_found(format!(
        "there is no schedule {name}; `optimus schedule list` has the names"
    ))
}

async fn get(session: &Session<'_>, name: &str) -> Result<ScheduleDetails, Failure> {
    session.client.schedules().get(name).await?.ok_or_else(|| unknown(name))
}

fn changed(session: &Session<'_>, name: &str, done: &str) -> Result<Exit, Failure> {
    let object = json!({ "schedule": name, "done": done });
    session.out.done(&object, &format!("schedule {name} is {done}"))?;
    Ok(Exit::Done)
}

/// Reads the workers of a queue, if one of its schedules is overdue.
async fn workers_if_overdue(
    inspector: &Inspector,
    queue: &QueueName,
    found: &[ScheduleDetails],
) -> Result<Vec<WorkerDetails>, Error> {
    if found.iter().any(ScheduleDetails::is_overdue) {
        return inspector.workers(queue).await;
    }
    Ok(Vec::new())
}

async fn list(session: &Session<'_>, queues: &[QueueName]) -> Result<Exit, Failure> {
    let now = session.now().await?;
    let read = async |inspector: Inspector, queue: QueueName| {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = session.client.schedules().list(&queue, after.as_ref(), PAGE_MAX).await?;
            let workers = workers_if_overdue(&inspector, &queue, &page.rows).await?;
            rows.extend(page.rows.iter().map(|found| ScheduleRow::of(found, &workers)));
            after = page.next;
            if after.is_none() {
                return Ok(rows);
            }
        }
    };
    let parts = session.each_queue(&session.queues(queues).await?, read).await?;
    let rows: Vec<ScheduleRow> = parts.into_iter().flatten().collect();
    session.known_if_empty(&rows, queues).await?;
    session.out.rows(&rows, now, "There is no schedule.")?;
    Ok(Exit::Done)
}

/// A schedule with its next instants.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    row: ScheduleRow,
    #[serde(rename = "instants_ms")]
    instants: Vec<i64>,
}

async fn show(session: &Session<'_>, name: &str) -> Result<Exit, Failure> {
    let found = get(session, name).await?;
    let (now, ticks) = (session.now().await?, session.client.schedules().history(name).await?);
    let workers =
        workers_if_overdue(&session.inspector(), &found.queue, std::slice::from_ref(&found))
            .await?;
    let row = ScheduleRow::of(&found, &workers);
    // A pause has no instants, as the list says.
    let shown = if found.paused.is_some() { 0 } else { SHOWN };
    let next: Vec<_> =
        found.next_instants(shown).iter().map(|at| (at.to_rfc3339(), at.to_utc())).collect();
    let next_text = next.iter().map(|(text, at)| format!("{text} ({})", text::relative(*at, now)));
    let next_text = next_text.collect::<Vec<_>>().join("\n");
    let next: Vec<i64> = next.iter().map(|(_, at)| at.timestamp_millis()).collect();
    let last = ticks.iter().take(SHOWN).map(|tick| TickRow::of(tick).sentence(now));
    let record = found.record.as_ref();
    let task = record.map_or_else(ToString::to_string, |record| record.task.clone());
    let payload = |record: &optimus_core::TaskRecord| {
        String::from_utf8_lossy(&session.out.secrets().payload(&record.payload)).into_owned()
    };
    let arguments = record.ok().map(payload);
    let paused = found.paused.as_ref().map(|(since, by)| {
        let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
        let why = &found.paused_why;
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        format!("since {}{by}{why}", text::instant(*since, now))
    });
    let made_by = match &found.release {
        Some(release) => format!("code, release {release}"),
        None => "made at run time".to_owned(),
    };
    let fields = [
        ("schedule", Some(found.name.clone())),
        ("queue", Some(found.queue.to_string())),
        ("task", Some(task)),
        ("arguments", arguments),
        ("pace", Some(found.pace.to_string())),
        ("jitter", (!found.jitter.is_zero()).then(|| text::duration(found.jitter))),
        ("missed", Some(row.missed.clone())),
        ("overlap", Some(row.overlap.clone())),
        ("from", Some(made_by)),
        ("made", Some(text::instant(found.made, now))),
        ("paused", paused),
        ("overdue", row.overdue.map(|overdue| overdue.to_string())),
        ("next", Some(next_text).filter(|text| !text.is_empty())),
        ("last", Some(last.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())),
    ];
    session.out.fields(&Shown { row, instants: next }, &fields)?;
    Ok(Exit::Done)
}
