//! `optimus task show`: all that is stored of a task.

use std::time::Duration;

use chrono::{DateTime, Utc};
use optimus_core::{
    AttemptError, BLOB_BYTES_MIN, Prerequisite, RunningTask, TaskDetails, TaskId, TaskRecord,
    TaskState, Value,
};
use serde_json::json;

use super::{process, task_log};
use crate::{
    advice::advice,
    failure::{Exit, Failure},
    output::{secrets::Secrets, text},
    session::Session,
};

/// How many bytes of arguments and results are shown without `--full`.
pub(crate) const SHOWN: usize = 2_000;
/// How long the result is waited for, which is there already.
const RESULT_WAIT: Duration = Duration::from_millis(500);

type Field = (&'static str, Option<String>);

/// Prints a task, with this many bytes of its arguments and of its result.
pub(crate) async fn show(session: &Session<'_>, id: &str, limit: usize) -> Result<Exit, Failure> {
    let id = session.task_id(id).await?;
    let Some(found) = session.inspector().get(&id).await? else {
        let hint = if session.client.group::<()>(id.clone()).progress().await.is_ok() {
            format!("{id} is a group: {}", advice("group show", [&id]))
        } else {
            format!("nothing is stored of {id}; it has ended long ago, or never existed")
        };
        return Err(Failure::not_found(hint));
    };
    let (now, secrets) = (session.now().await?, session.out.secrets());
    let result = match found.state {
        TaskState::Success => result_of(session, &id).await,
        _ => None,
    };
    let running = match found.state {
        TaskState::Working => process::running(session, &id).await?,
        _ => None,
    };
    let record = found.record.as_ref().and_then(|record| record.as_ref().ok());
    let before = before(session, &found, record).await?;
    let mut fields = standing(&found, now);
    fields.extend(running.iter().flat_map(|task| progress(task, now)));
    fields.extend(record.map(|record| options(record, before)).unwrap_or_default());
    if let Some(Err(problem)) = &found.record {
        fields.push(("record", Some(problem.to_string())));
    }
    if let Some(record) = record {
        let line =
            |(name, value): (&String, &String)| format!("{name}: {}", secrets.header(name, value));
        let names = record.headers.iter().map(line);
        fields.push(("headers", some(names.collect::<Vec<_>>().join("\n"))));
        fields.push(("arguments", Some(shown(&secrets.payload(&record.arguments()), limit))));
    }
    fields.push((
        "result",
        result.as_ref().map(|result| shown(&secrets.payload(result.to_string().as_bytes()), limit)),
    ));
    fields.push(("log", task_log::shown(&found.log, limit)));
    for error in found.errors.iter().rev() {
        fields.push(("error", Some(error_text(error, now))));
    }
    let mut object = object(&found, record, result.as_ref(), secrets);
    if let Some(RunningTask { since, progress, .. }) = &running {
        object["running_since_ms"] = json!(since.timestamp_millis());
        object["progress"] = json!(progress);
    }
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
}

/// Returns how far a running task has come.
fn progress(task: &RunningTask, now: DateTime<Utc>) -> [Field; 2] {
    let progress = task.progress.as_ref();
    let since = text::duration(text::since(task.since, now));
    [("runs for", Some(since)), ("progress", progress.map(process::progress_text))]
}

/// Reads a result that is kept.
async fn result_of(session: &Session<'_>, id: &TaskId) -> Option<Value> {
    session.client.handle::<Value>(id.clone()).result_within(RESULT_WAIT).await.ok()
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns where the task is, since when, and how often it was tried.
fn standing(found: &TaskDetails, now: DateTime<Utc>) -> Vec<Field> {
    let at = found.at.map(|at| text::instant(at, now));
    let (due, ended) = match found.state {
        TaskState::Delayed | TaskState::Retry => (at, None),
        _ => (None, at),
    };
    let tries = [
        (found.failures, "failed"),
        (found.losses, "lost with their worker"),
        (found.misfits, "given back, because no worker could run it"),
    ];
    let tries = tries.iter().filter(|(count, _)| *count > 0);
    let tries = tries.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ");
    let record = found.record.as_ref().and_then(|record| record.as_ref().ok());
    let task = record.map(|record| record.task.clone());
    let of_summary = found.summary.as_ref().and_then(|text| text.split(' ').next());
    vec![
        ("id", Some(found.id.to_string())),
        ("task", task.or_else(|| of_summary.map(str::to_owned))),
        ("state", Some(found.state.to_string())),
        ("worker", found.worker.as_ref().map(ToString::to_string)),
        (
            "cancel",
            found.cancel_requested.map(|at| format!("requested {}", text::instant(at, now))),
        ),
        ("submitted", found.id.created().map(|at| text::instant(at, now))),
        ("due", due),
        ("ended", ended),
        ("attempts", some(tries)),
        ("success", found.summary.as_deref().map(summary_text)),
    ]
}

/// Describes a summary, `<task> <attempt> <ms> <worker>`.
fn summary_text(summary: &str) -> String {
    let words: Vec<&str> = summary.splitn(4, ' ').collect();
    match words[..] {
        [_, attempt, ms, worker] => {
            let took = ms
                .parse()
                .map(Duration::from_millis)
                .map_or_else(|_| ms.to_owned(), text::duration);
            format!("in attempt {attempt}, after {took}, on {worker}")
        }
        _ => summary.to_owned(),
    }
}

/// Returns what the task waits for, and what it has waited for. Only a blocked task still waits.
async fn before(
    session: &Session<'_>,
    found: &TaskDetails,
    record: Option<&TaskRecord>,
) -> Result<[Field; 2], Failure> {
    let after = record.and_then(|record| record.after.as_ref());
    let all = after.map_or(&[][..], |after| &after.prerequisites);
    let waiting: Vec<Prerequisite> = if found.state == TaskState::Blocked && !all.is_empty() {
        let each = session.inspector().prerequisites(&found.id).await?.into_iter();
        each.filter(|one| !one.is_met).map(|one| one.prerequisite).collect()
    } else {
        Vec::new()
    };
    let (waits, met): (Vec<_>, Vec<_>) = all.iter().partition(|one| waiting.contains(one));
    let lines = |those: Vec<&Prerequisite>| {
        some(those.into_iter().map(prerequisite).collect::<Vec<_>>().join("\n"))
    };
    Ok([("waits for", lines(waits)), ("after", lines(met))])
}

fn options(record: &TaskRecord, [waits, after]: [Field; 2]) -> Vec<Field> {
    let limits = record.limits.iter().map(|limit| limit.gate.to_string());
    let lane = record.lane.as_ref().map(|lane| format!("{} (width {})", lane.key, lane.width));
    let member = record.member.as_ref();
    vec![
        ("biz id", record.biz_id.clone()),
        ("lane", lane),
        waits,
        after,
        ("member of", member.map(|member| format!("{}, position {}", member.group, member.index))),
        ("runs with", record.gather.as_ref().map(|gather| format!("key {:?}", gather.by))),
        ("limits", some(limits.collect::<Vec<_>>().join(", "))),
        ("priority", (record.priority != 0).then(|| record.priority.to_string())),
        ("timeout", Some(text::duration(record.timeout))),
        ("max retry", Some(record.max_retry.to_string())),
        (
            "expires",
            record.expires_in.map(|time| format!("{} after its submit", text::duration(time))),
        ),
    ]
}

fn prerequisite(prerequisite: &Prerequisite) -> String {
    match prerequisite {
        Prerequisite::Task(id) => id.to_string(),
        Prerequisite::Key { queue, task, biz_id } => {
            format!("{queue}/{task} with biz id {biz_id:?}")
        }
    }
}

fn error_text(error: &AttemptError, now: DateTime<Utc>) -> String {
    let AttemptError { reason, message, attempt, worker, at, .. } = error;
    let on = if worker.is_empty() { String::new() } else { format!(" on {worker}") };
    let first = format!("attempt {attempt}{on}, {reason}, {}", text::instant(*at, now));
    if message.is_empty() { first } else { format!("{first}\n{message}") }
}

/// Returns arguments or a result as text, cut at a number of bytes.
fn shown(bytes: &[u8], limit: usize) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]);
    if bytes.len() > limit {
        return format!("{text}… ({}; --full prints all)", text::size(bytes.len() as u64));
    }
    text.into_owned()
}

fn object(
    found: &TaskDetails,
    record: Option<&TaskRecord>,
    result: Option<&Value>,
    secrets: Secrets,
) -> Value {
    let time = |at: DateTime<Utc>| at.timestamp_millis();
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // Arguments are text: JSON's readers would change large numbers.
    let arguments = record
        .map(|record| String::from_utf8_lossy(&secrets.payload(&record.arguments())).into_owned());
    let unreadable = found.record.as_ref().and_then(|record| record.as_ref().err());
    json!({
        "id": found.id,
        "task": record.map(|record| &record.task),
        "state": found.state,
        "worker": found.worker.as_ref().map(ToString::to_string),
        "created_ms": found.id.created().map(time),
        "at_ms": found.at.map(time),
        "cancel_requested_ms": found.cancel_requested.map(time),
        "failures": found.failures,
        "losses": found.losses,
        "misfits": found.misfits,
        "biz_id": record.and_then(|record| record.biz_id.as_ref()),
        "lane": record.and_then(|record| record.lane.as_ref()).map(|lane| &lane.key),
        "priority": record.map(|record| record.priority),
        "timeout_ms": record.map(|record| ms(record.timeout)),
        "max_retry": record.map(|record| record.max_retry),
        "headers": record.map(|record| &record.headers),
        "prerequisites": record.and_then(|record| record.after.as_ref()).map(|after| {
            after.prerequisites.iter().map(prerequisite).collect::<Vec<_>>()
        }),
        "group": record.and_then(|record| record.member.as_ref()).map(|member| &member.group),
        "arguments": arguments,
        "waits_for_result": record.is_some_and(TaskRecord::waits_for_result),
        "large_arguments": record.is_some_and(|record| record.payload.len() >= BLOB_BYTES_MIN),
        "result": result,
        "summary": found.summary,
        "errors": found.errors.iter().map(AttemptError::to_json).collect::<Vec<_>>(),
        "log": found.log,
        "unreadable": unreadable.map(ToString::to_string),
    })
}

/// Returns a task for an export.
pub(crate) fn exported(found: &TaskDetails, secrets: Secrets) -> Value {
    object(found, found.record.as_ref().and_then(|record| record.as_ref().ok()), None, secrets)
}
