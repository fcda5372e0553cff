//! `optimus task submit`: submits a task by its name.

use std::{
    io::{self, Read},
    time::Duration,
};

use chrono::{DateTime, Utc};
use clap::Args;
use optimus_core::{Due, NamedCall, QueueName};
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    parse,
    session::Session,
};

/// How many names of known tasks a question lists.
const NAMES_MAX: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct SubmitTask {
    queue: QueueName,
    /// The name of the task.
    task: String,
    /// The arguments: a JSON object with the names of the parameters, stored byte for byte; `-`
    /// reads it from stdin.
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    args: String,
    /// Let it run after this time.
    #[arg(long = "in", value_name = "TIME", value_parser = parse::duration, conflicts_with = "at")]
    delay: Option<Duration>,
    /// Let it run at this time, such as 2026-10-03T09:00:00Z.
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant)]
    at: Option<DateTime<Utc>>,
    /// Submit nothing if a task with this biz id is live.
    #[arg(long, value_name = "ID")]
    biz_id: Option<String>,
    /// Run it in order with the other tasks of this lane, which has the width 1.
    #[arg(long, value_name = "KEY")]
    lane: Option<String>,
    /// A header of the task, NAME=VALUE; may be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse::whole_header)]
    headers: Vec<(String, String)>,
    /// How many attempts may follow the first failed one [default: 3].
    #[arg(long, value_name = "N")]
    max_retry: Option<u32>,
    /// How long one attempt may run [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn submit(session: &Session<'_>, wanted: SubmitTask) -> Result<Exit, Failure> {
    let (queue, task) = (wanted.queue.clone(), wanted.task.clone());
    let call = call(wanted)?;
    if let Some(doubt) = doubt(session, &queue, &task).await? {
        session.consent.ask(&format!("{doubt} Submit it?"))?;
    }
    let (target, submitting) = (format!("{queue} {task}"), session.client.submit(call));
    let handle = session.audited("task.submit", target, submitting).await?;
    let (id, is_duplicate) = (handle.id(), handle.is_duplicate());
    let object = json!({ "id": id, "queue": queue, "task": task, "duplicate": is_duplicate });
    session.out.done(&object, &id.to_string())?;
    if is_duplicate {
        session.out.hint("nothing was submitted: this task has the biz id");
    }
    Ok(Exit::Done)
}

fn call(wanted: SubmitTask) -> Result<NamedCall, Failure> {
    let arguments = if wanted.args == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        bytes
    } else {
        wanted.args.into_bytes()
    };
    let mut call = NamedCall::new(wanted.queue, wanted.task, arguments)?;
    for (name, value) in wanted.headers {
        call = call.header(name, value);
    }
    if let Some(biz_id) = wanted.biz_id {
        call = call.biz_id(biz_id);
    }
    if let Some(lane) = wanted.lane {
        call = call.lane(lane);
    }
    if let Some(max_retry) = wanted.max_retry {
        call = call.max_retry(max_retry);
    }
    if let Some(timeout) = wanted.timeout {
        call = call.timeout(timeout);
    }
    Ok(match (wanted.delay, wanted.at) {
        (Some(delay), _) => call.due(Due::In(delay)),
        (_, Some(at)) => call.due(Due::At(at)),
        _ => call,
    })
}

/// Returns why the task may not run: no live worker of the queue knows it.
async fn doubt(
    session: &Session<'_>,
    queue: &QueueName,
    task: &str,
) -> Result<Option<String>, Failure> {
    let workers = session.inspector().workers(queue).await?;
    if workers.is_empty() {
        return Ok(Some(format!("No worker serves queue {queue}, so task {task} would wait.")));
    }
    let tasks = workers.iter().flat_map(|worker| &worker.description.tasks);
    let mut known: Vec<&str> = tasks.map(String::as_str).collect();
    if known.contains(&task) {
        return Ok(None);
    }
    known.sort_unstable();
    known.dedup();
    let more = known.len().saturating_sub(NAMES_MAX);
    known.truncate(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(Some(format!(
        "No worker of queue {queue} knows a task {task}; they know {}{more}. It would wait for a \
         worker that knows it, and be marked Dead if none comes.",
        known.join(", ")
    )))
}
