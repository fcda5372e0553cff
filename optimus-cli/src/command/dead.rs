//! `optimus dead`: dead tasks, in bulk.

use std::cmp::Reverse;

use clap::{Args, Subcommand};
use optimus_core::{Error, Inspector, PAGE_MAX, QueueName, TaskRow, TaskState};

use super::{fingerprint_row::CauseRow, task_row::TaskRecordRow};
use crate::{
    bulk::Act,
    failure::{Exit, Failure},
    operation,
    output::text,
    page::{self, Filter, Nothing},
    parse,
    queue_names::QueueNames,
    session::Session,
    unread::Unread,
};

#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead tasks, the latest of each queue first.
    List {
        #[command(flatten)]
        which: Which,
        /// How many tasks to list.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse::limit)]
        limit: usize,
    },
    /// List the causes of deaths: one row for all dead tasks with the same fingerprint.
    Fingerprints {
        #[command(flatten)]
        queues: QueueNames,
    },
    /// Put dead tasks back in the ready list, with new attempts. They are counted and shown first.
    Retry {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        sure: Sure,
    },
    /// Delete dead tasks. They are counted and shown first. This can't be undone.
    Delete {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        sure: Sure,
    },
    /// Print dead tasks with their arguments and errors, one JSON object in each line.
    Export {
        #[command(flatten)]
        which: Which,
    },
}

/// Which dead tasks are meant.
#[derive(Debug, Args)]
pub(crate) struct Which {
    #[command(flatten)]
    queues: QueueNames,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Args)]
pub(crate) struct Sure {
    /// Refuse if there is another number of tasks than this.
    #[arg(long, value_name = "N")]
    expect: Option<u64>,
}

pub(crate) async fn run(command: DeadCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        DeadCommand::List { which, limit } => list(session, &which, limit).await,
        DeadCommand::Fingerprints { queues } => fingerprints(session, queues.named()).await,
        DeadCommand::Retry { which, sure } => change(session, Act::Retry, &which, sure).await,
        DeadCommand::Delete { which, sure } => change(session, Act::Delete, &which, sure).await,
        DeadCommand::Export { which } => export(session, &which).await,
    }
}

async fn list(session: &Session<'_>, which: &Which, limit: usize) -> Result<Exit, Failure> {
    let (now, mut rows) = (session.now().await?, Vec::new());
    let (mut is_more, takes) = (false, which.filter.takes(now)?);
    let (inspector, mut unread) = (session.inspector(), Unread::default());
    for queue in session.queues(which.queues.named()).await? {
        let reading = read_dead(&inspector, &queue, &takes, (&mut rows, limit));
        is_more |= unread.sort(&queue, reading.await)?.unwrap_or_default() || rows.len() > limit;
        rows.truncate(limit);
    }
    session.leave_out(&unread)?;
    session.known_if_empty(&rows, which.queues.named()).await?;
    let nothing =
        Nothing { of_all: "No task is dead.", of_filter: "No dead task matches the filter." };
    session.out.rows(&rows, now, which.filter.nothing(&nothing))?;
    if is_more {
        session
            .out
            .hint(&format!("the first {}; --limit shows more", text::count(limit as u64, "task")));
    }
    Ok(Exit::Done)
}

/// Adds the dead tasks of a queue that are taken, until there are enough rows. Returns whether it
/// has not read all of them.
async fn read_dead(
    inspector: &Inspector,
    queue: &QueueName,
    takes: impl Fn(&TaskRow) -> bool,
    (rows, limit): (&mut Vec<TaskRecordRow>, usize),
) -> Result<bool, Error> {
    let mut after = None;
    while rows.len() < limit {
        let page = inspector.list(queue, TaskState::Dead, after.as_ref(), PAGE_MAX).await?;
        let matching = page.rows.iter().filter(|row| takes(row));
        rows.extend(matching.map(TaskRecordRow::of));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(after.is_some())
}

async fn fingerprints(session: &Session<'_>, queues: &[QueueName]) -> Result<Exit, Failure> {
    let (now, mut rows) = (session.now().await?, Vec::new());
    let (mut scanned, mut dead) = (0, 0);
    let read = async |inspector: Inspector, queue: QueueName| {
        let found = inspector.fingerprints(&queue).await?;
        Ok((queue, found))
    };
    for (queue, found) in session.each_queue(&session.queues(queues).await?, read).await? {
        (scanned, dead) = (scanned + found.scanned, dead + found.dead);
        rows.extend(CauseRow::all(&queue, found, session.out.secrets()));
    }
    rows.sort_by_key(|row| Reverse(row.dead()));
    session.known_if_empty(&rows, queues).await?;
    session.out.rows(&rows, now, "No task is dead.")?;
    if scanned < dead {
        let (scanned, dead) = (text::number(scanned), text::count(dead, "dead task"));
        session.out.hint(&format!("looked at {scanned} of {dead}, the oldest of each queue"));
    }
    Ok(Exit::Done)
}

async fn change(
    session: &Session<'_>,
    act: Act,
    which: &Which,
    sure: Sure,
) -> Result<Exit, Failure> {
    let filter = which.filter.of(which.queues.named(), &[TaskState::Dead])?;
    let question = |count: &str| act.question(count);
    operation::change(session, act.of_many(), filter, sure.expect, question).await
}

async fn export(session: &Session<'_>, which: &Which) -> Result<Exit, Failure> {
    let queues = session.queues(which.queues.named()).await?;
    let found = page::find(session, &queues, &[TaskState::Dead], &which.filter).await?;
    let mut unread = Unread::default();
    for id in &found.ids {
        let task = session.inspector().get(id).await;
        if let Some(task) = unread.sort(id.queue(), task)?.flatten() {
            session.out.line_of_json(&super::task_show::exported(&task, session.out.secrets()))?;
        }
    }
    session.leave_out(&unread)?;
    if found.is_whole {
        return Ok(Exit::Done);
    }
    session.out.warn(&format!("only the first {}", text::count(found.count(), "task")));
    Ok(Exit::Partly)
}
