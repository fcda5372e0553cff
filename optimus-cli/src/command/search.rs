//! `optimus search`: a task by its id or its biz id, in all queues.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use clap::Args;
use futures_util::{StreamExt, stream};
use optimus_core::{Error, Key, QueueName, TaskId, TaskState};
use serde::Serialize;

use super::task_row::tone;
use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        table::{Cell, Column},
        text,
    },
    session::{REQUESTS_MAX, Session},
    unread::Unread,
};

/// Find a task by its id or its biz id, in all queues.
///
/// A biz id belongs to a queue and the name of a task, so each name that a worker of the queue
/// knows is asked for.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// An id (queue/uuid, or the uuid alone), or a biz id.
    text: String,
    /// Also look for the biz id among tasks of this name, which no worker knows now; may be
    /// repeated.
    #[arg(long = "task", value_name = "NAME")]
    tasks: Vec<String>,
}

/// A task that was found.
#[derive(Debug, Serialize)]
struct HitRow {
    id: TaskId,
    /// `id` or `biz id`.
    by: &'static str,
    task: Option<String>,
    state: TaskState,
    is_group: bool,
}

impl Row for HitRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("TASK"),
        Column::text("STATE"),
        Column::text("FOUND BY"),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let state = if self.is_group { "group" } else { self.state.as_str() };
        vec![
            Cell::new(self.id.to_string()),
            Cell::or_dash(self.task.clone()),
            Cell::new(state).tone(tone(self.state)),
            Cell::new(self.by),
        ]
    }
}

pub(crate) async fn run(search: Search, session: &Session<'_>) -> Result<Exit, Failure> {
    let (mut hits, mut unread) = (Vec::new(), Unread::default());
    let wanted = search.text.trim();
    let ids = match wanted.parse::<TaskId>() {
        Ok(id) => vec![id],
        Err(_) => match session.holders_of(wanted).await {
            Ok((ids, refused)) => {
                unread = refused;
                ids
            }
            Err(failure) if failure.exit == Exit::Usage => Vec::new(),
            Err(failure) => return Err(failure),
        },
    };
    for id in ids {
        hits.extend(look(session, id, "id").await?);
    }
    let names = known_tasks(session, &search.tasks).await?;
    let asked: BTreeSet<String> = names.iter().map(|(_, task)| task.clone()).collect();
    let finds = names.into_iter().map(|(queue, task)| {
        let (inspector, key) = (session.inspector(), Key::new(queue.as_str(), task, &search.text));
        async move { (inspector.find(&key).await, queue) }
    });
    let mut answers = stream::iter(finds).buffered(REQUESTS_MAX);
    while let Some((answer, queue)) = answers.next().await {
        let Some(id) = unread.sort(&queue, answer)?.flatten() else { continue };
        let hit = look(session, id, "biz id").await;
        hits.extend(unread.sort(&queue, hit)?.flatten());
    }
    session.leave_out(&unread)?;
    let now = session.now().await?;
    let names = text::count(asked.len() as u64, "task name");
    session.out.rows(
        &hits,
        now,
        &format!("Nothing was found, by the id and by the biz id of {names}."),
    )?;
    if hits.is_empty() {
        session.out.hint(
            "a task that has succeeded no longer has its biz id, unless it has a `biz_window` or \
             an `outcome_ttl`; --task NAME looks for the biz id of a task that no worker knows now",
        );
        return Ok(Exit::NotFound);
    }
    Ok(Exit::Done)
}

/// Returns the names of tasks of each queue: those that its workers know, and those that are given.
async fn known_tasks(
    session: &Session<'_>,
    given: &[String],
) -> Result<BTreeSet<(QueueName, String)>, Failure> {
    let queues = session.queues(&[]).await?;
    let read = async |inspector: optimus_core::Inspector, queue: QueueName| {
        let workers = inspector.workers(&queue).await?;
        Ok((queue, workers))
    };
    let mut names = BTreeSet::new();
    for (queue, workers) in session.each_queue(&queues, read).await? {
        let known = workers.into_iter().flat_map(|worker| worker.description.tasks);
        names.extend(known.chain(given.iter().cloned()).map(|task| (queue.clone(), task)));
    }
    Ok(names)
}

/// Reads what is under an id; `None` if nothing is.
async fn look(
    session: &Session<'_>,
    id: TaskId,
    by: &'static str,
) -> Result<Option<HitRow>, Error> {
    if let Some(task) = session.inspector().get(&id).await? {
        let name = task.record.and_then(Result::ok).map(|record| record.task);
        let of_summary = task.summary.and_then(|text| text.split(' ').next().map(str::to_owned));
        let state = task.state;
        return Ok(Some(HitRow { id, by, task: name.or(of_summary), state, is_group: false }));
    }
    let group = session.client.group::<()>(id.clone()).progress().await.ok();
    Ok(group.map(|group| {
        let state = group.ended.unwrap_or(TaskState::Blocked);
        HitRow { id, by, task: None, state, is_group: true }
    }))
}
