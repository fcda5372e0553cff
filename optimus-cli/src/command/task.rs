//! `optimus task`: list, look, explain, submit, retry, cancel, delete.

use std::{
    collections::HashSet,
    io::{self, BufRead},
    iter, slice,
};

use clap::{Args, Subcommand};
use optimus_core::{PAGE_MAX, PageCursor, QueueName, TaskPage, TaskRow, TaskState};
use serde_json::json;

use super::{
    task_row::TaskRecordRow,
    task_show,
    task_submit::{self, SubmitTask},
};
use crate::{
    advice,
    bulk::{self, Act},
    failure::{Exit, Failure},
    operation,
    output::text,
    page::{Filter, Nothing},
    parse,
    session::Session,
    tally::Tally,
};

/// How many tasks a list without `--all` looks at.
const SCANNED_MAX: usize = 10_000;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List the tasks of a queue in a state, the next one first; ended ones, the latest first.
    List(List),
    /// Show all that is stored of a task: its options, arguments, errors, and result.
    Show {
        /// The id of the task: queue/uuid, or the uuid alone.
        id: String,
        /// Print all of the arguments and the result, however long they are.
        #[arg(long)]
        full: bool,
    },
    /// Say what keeps a task, or a group, from starting or ending.
    Explain {
        /// The id: queue/uuid, or the uuid alone.
        id: String,
    },
    /// Submit a task by its name, with arguments as JSON. Its definition is not known here: options
    /// that are not given have their defaults, and limits of the definition do not apply.
    Submit(Box<SubmitTask>),
    /// Put dead or cancelled tasks back in the ready list, with new attempts: tasks that are named,
    /// or all in a state. Those are counted and shown first.
    Retry(Which),
    /// Cancel tasks that wait, and ask the workers of running ones to stop them: tasks that are
    /// named, or all in a state. Those are counted and shown first.
    Cancel(Which),
    /// Delete tasks with all their data: tasks that are named, or all in a state. Those are counted
    /// and shown first. This can't be undone.
    Delete(Which),
    /// Let delayed tasks and retries run now: tasks that are named, or all in a state. Those are
    /// counted and shown first.
    RunNow(Which),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    queue: QueueName,
    /// The state of the tasks; may be repeated.
    #[arg(long = "state", value_name = "STATE", default_values = USUAL)]
    states: Vec<TaskState>,
    #[command(flatten)]
    filter: Filter,
    /// How many tasks to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse::limit)]
    limit: usize,
    /// Begin after this place, which the list before has named. It needs the one --state of that
    /// list.
    #[arg(long, value_name = "CURSOR")]
    after: Option<PageCursor>,
    /// List all tasks, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// The states of tasks that have not ended, and of those that need somebody.
const USUAL: [&str; 6] = ["working", "ready", "retry", "delayed", "blocked", "dead"];

/// Tasks that are named, or all in a state.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The ids: queue/uuid, or the uuid alone; `-` reads one from each line of stdin.
    #[arg(conflicts_with = "states", value_name = "ID")]
    ids: Vec<String>,
    /// Without ids: the state of the tasks; may be repeated.
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<TaskState>,
    /// The queues of these tasks [default: all].
    #[arg(long = "queue", value_name = "QUEUE", allow_hyphen_values = true, requires = "states")]
    queues: Vec<QueueName>,
    #[command(flatten)]
    filter: Filter,
    /// With --state: refuse if there is another number of tasks than this.
    #[arg(long, value_name = "N", requires = "states")]
    expect: Option<u64>,
}

pub(crate) async fn run(command: TaskCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        TaskCommand::List(options) => list(session, options).await,
        TaskCommand::Show { id, full } => {
            let limit = if full { usize::MAX } else { task_show::SHOWN };
            task_show::show(session, &id, limit).await
        }
        TaskCommand::Explain { id } => explain(session, &id).await,
        TaskCommand::Submit(wanted) => task_submit::submit(session, *wanted).await,
        TaskCommand::Retry(which) => change(session, Act::Retry, which).await,
        TaskCommand::Cancel(which) => change(session, Act::Cancel, which).await,
        TaskCommand::Delete(which) => change(session, Act::Delete, which).await,
        TaskCommand::RunNow(which) => change(session, Act::RunNow, which).await,
    }
}

async fn list(session: &Session<'_>, options: List) -> Result<Exit, Failure> {
    let List { queue, states, filter, limit, after, all } = options;
    if after.is_some() && states.len() != 1 {
        return Err(Failure::usage("--after needs the one --state of the list before"));
    }
    let (now, mut rows, mut scanned) = (session.now().await?, Vec::new(), 0);
    let limit = if all { usize::MAX } else { limit };
    let scan_max = if all { usize::MAX } else { SCANNED_MAX };
    let (mut place, takes) = (after, filter.takes(now)?);
    for (number, state) in states.iter().enumerate() {
        loop {
            let wanted = (limit - rows.len()).min(PAGE_MAX);
            let step = if filter.is_all() { wanted } else { PAGE_MAX };
            let from = (&queue, *state, place.as_ref());
            let page = page(session, from, (wanted, step), &takes).await?;
            scanned += page.rows.len();
            let matching = page.rows.iter().filter(|row| takes(row));
            rows.extend(matching.map(TaskRecordRow::of));
            place = page.next;
            let is_over = place.is_none();
            if rows.len() >= limit || scanned >= scan_max || is_over {
                break;
            }
        }
        if rows.len() >= limit || scanned >= scan_max {
            let more = (place, *state, &states[number + 1..], scanned);
            return print(session, &rows, now, filter.nothing(&NOTHING), more);
        }
    }
    session.known_if_empty(&rows, slice::from_ref(&queue)).await?;
    let last = states.last().copied().unwrap_or(TaskState::Ready);
    print(session, &rows, now, filter.nothing(&NOTHING), (None, last, &[], scanned))
}

/// What a list without a row says.
const NOTHING: Nothing = Nothing {
    of_all: "No task is in these states.",
    of_filter: "No task in these states matches the filter.",
};

/// Reads a page of at most `step` tasks, of which `takes` takes at most `wanted`. The page ends
/// with the last of these, so that the list after it leaves out none.
async fn page(
    session: &Session<'_>,
    (queue, state, after): (&QueueName, TaskState, Option<&PageCursor>),
    (wanted, mut step): (usize, usize),
    takes: &impl Fn(&TaskRow) -> bool,
) -> Result<TaskPage, Failure> {
    loop {
        let page = session.inspector().list(queue, state, after, step).await?;
        let mut matching = page.rows.iter().enumerate().filter(|(_, row)| takes(row));
        match matching.nth(wanted - 1) {
            Some((last, _)) if last + 1 < page.rows.len().min(step) => step = last + 1,
            _ => return Ok(page),
        }
    }
}

/// Prints rows, and how to go on.
fn print(
    session: &Session<'_>,
    rows: &[TaskRecordRow],
    now: chrono::DateTime<chrono::Utc>,
    nothing: &str,
    (next, state, others, scanned): (Option<PageCursor>, TaskState, &[TaskState], usize),
) -> Result<Exit, Failure> {
    session.out.rows(rows, now, nothing)?;
    let looked = text::count(scanned as u64, "task");
    let others: Vec<_> = others.iter().map(|state| format!("--state {state}")).collect();
    let (others, then) = (others.join(" "), if others.is_empty() { "" } else { ", then " });
    if let Some(next) = next {
        let more = format!("--state {state} --after {next}{then}{others}");
        session.out.more(&format!("{looked} looked at; more: {more}"));
    } else if !others.is_empty() {
        session.out.more(&format!("{looked} looked at; more: {others}"));
    }
    Ok(Exit::Done)
}

async fn explain(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let id = session.task_id(id).await?;
    let waits = session.inspector().explain(&id).await?;
    let ways = advice::ways_on(&id, &waits);
    let object = json!({
        "id": id,
        "waits_for": waits.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "advice": ways,
        "not_before_ms": waits.not_before.map(|at| at.timestamp_millis()),
    });
    let is_forgotten = matches!(waits.obstacles[..], [optimus_core::Obstacle::Forgotten]);
    let text = iter::once(waits.to_string()).chain(ways).collect::<Vec<_>>().join("\n");
    session.out.done(&object, &text)?;
    Ok(if is_forgotten { Exit::NotFound } else { Exit::Done })
}

async fn change(session: &Session<'_>, act: Act, which: Which) -> Result<Exit, Failure> {
    let Which { ids, states, queues, filter, expect } = which;
    if !states.is_empty() {
        let filter = filter.of(&queues, &states)?;
        return operation::change(session, act.of_many(), filter, expect, |count| {
            act.question(count)
        })
        .await;
    }
    if ids.is_empty() && filter.is_all() {
        return Err(Failure::usage(format!(
            "name tasks by their ids, or all tasks in a state, such as `optimus task {} --queue \
             mail`",
            act.example()
        )));
    }
    if !filter.is_all() {
        return Err(Failure::usage("a filter needs --state; ids name the tasks themselves"));
    }
    change_named(session, act, ids).await
}

async fn change_named(
    session: &Session<'_>,
    act: Act,
    texts: Vec<String>,
) -> Result<Exit, Failure> {
    let mut ids = Vec::new();
    for text in texts {
        if text != "-" {
            ids.push(session.task_id(&text).await?);
            continue;
        }
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|why| Failure::usage(format!("stdin can't be read: {why}")))?;
            if !line.trim().is_empty() {
                ids.push(session.task_id(line.trim()).await?);
            }
        }
    }
    let mut named = HashSet::new();
    ids.retain(|id| named.insert(id.clone()));
    // One task that is named is meant; a delete can't be undone.
    if act == Act::Delete || (act == Act::Cancel && ids.len() > 1) {
        let what = match &ids[..] {
            [one] => format!("task {one}"),
            ids => text::count(ids.len() as u64, "task"),
        };
        session.consent.ask(&act.question(&what))?;
    }
    let mut tally = Tally::default();
    bulk::change(session, act, &ids, &mut tally).await?;
    tally.print(session.out, act.done())
}
