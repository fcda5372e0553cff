//! `optimus group`: groups of tasks that end together.

use std::slice;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{GroupDetails, GroupProgress, Obstacle, PAGE_MAX, QueueName, TaskState};
use serde::Serialize;
use serde_json::json;

use crate::{
    advice,
    failure::{Exit, Failure},
    output::{
        Row,
        table::{Cell, Column},
        text,
    },
    parse,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List the groups whose home is a queue.
    List {
        queue: QueueName,
        /// Only those that have not ended.
        #[arg(long)]
        open: bool,
        /// How many groups to list.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse::limit)]
        limit: usize,
    },
    /// Show how far a group is, and what it waits for.
    Show {
        /// The id of the group: queue/uuid, or the uuid alone.
        id: String,
    },
    /// Cancel a group with its members that have not ended.
    Cancel {
        /// The id of the group: queue/uuid, or the uuid alone.
        id: String,
    },
}

#[derive(Debug, Serialize)]
struct GroupRow {
    id: String,
    #[serde(rename = "created_ms", with = "chrono::serde::ts_milliseconds_option")]
    created: Option<DateTime<Utc>>,
    #[serde(rename = "kept_until_ms", with = "chrono::serde::ts_milliseconds")]
    kept_until: DateTime<Utc>,
    total: u32,
    done: u32,
    failed: u32,
    cancelled: u32,
    lost: u32,
    ended: Option<TaskState>,
}

impl GroupRow {
    fn of(found: &GroupDetails) -> Self {
        let GroupProgress { total, done, failed, cancelled, lost, ended, .. } = found.progress;
        Self {
            id: found.id.to_string(),
            created: found.created,
            kept_until: found.kept_until,
            total,
            done,
            failed,
            cancelled,
            lost,
            ended,
        }
    }
}

impl Row for GroupRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("GROUP"),
        Column::number("MADE"),
        Column::number("ENDED"),
        Column::number("FAILED"),
        Column::number("WAITED FOR"),
        Column::text("STATE"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let state = self.ended.map_or("open", TaskState::as_str);
        let (done, total) = (text::number(self.done), text::number(self.total));
        vec![
            Cell::new(&self.id),
            Cell::or_dash(self.created.map(|at| text::relative(at, now))),
            Cell::new(format!("{done}/{total}")),
            Cell::number(u64::from(self.failed + self.cancelled)),
            Cell::number(u64::from(self.lost)),
            Cell::new(state),
        ]
    }
}

pub(crate) async fn run(command: GroupCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        GroupCommand::List { queue, open, limit } => {
            let which = if open { Which::Open } else { Which::All };
            list(session, &queue, which, limit).await
        }
        GroupCommand::Show { id } => show(session, &id).await,
        GroupCommand::Cancel { id } => {
            let id = session.task_id(&id).await?;
            let group = session.client.group::<()>(id.clone());
            let progress = group.progress().await?;
            session.consent.ask(&format!("Cancel group {id}? {progress}."))?;
            let count = session.audited("group.cancel", &id, group.cancel()).await?;
            let object = json!({ "id": id, "done": "cancelled", "members": count });
            let members = text::count(count, "member");
            session.out.done(&object, &format!("group {id} is cancelled, with {members}"))?;
            Ok(Exit::Done)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Open,
}

async fn list(
    session: &Session<'_>,
    queue: &QueueName,
    which: Which,
    limit: usize,
) -> Result<Exit, Failure> {
    let (now, mut rows, mut after) = (session.now().await?, Vec::new(), None);
    loop {
        let page = session.inspector().groups(queue, after.as_ref(), PAGE_MAX).await?;
        let is_meant =
            |group: &&GroupDetails| which == Which::All || group.progress.ended.is_none();
        rows.extend(page.rows.iter().filter(is_meant).map(GroupRow::of));
        after = page.next;
        if after.is_none() || rows.len() > limit {
            break;
        }
    }
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    session.known_if_empty(&rows, slice::from_ref(queue)).await?;
    session.out.rows(&rows, now, "There is no group.")?;
    if is_more {
        session
            .out
            .hint(&format!("the first {}; --limit shows more", text::count(limit as u64, "group")));
    }
    Ok(Exit::Done)
}

async fn show(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let id = session.task_id(id).await?;
    let progress = session.client.group::<()>(id.clone()).progress().await?;
    let (waits, now) = (session.inspector().explain(&id).await?, session.now().await?);
    // The explanation has looked at the members.
    let explained = waits.obstacles.iter().find_map(|obstacle| match obstacle {
        Obstacle::Group { progress, .. } => Some(progress),
        _ => None,
    });
    let progress = explained.unwrap_or(&progress);
    let ways = advice::ways_on(&id, &waits);
    let queues: Vec<&str> = progress.queues.iter().map(QueueName::as_str).collect();
    let object = json!({
        "id": id,
        "created_ms": id.created().map(|at| at.timestamp_millis()),
        "total": progress.total,
        "done": progress.done,
        "failed": progress.failed,
        "cancelled": progress.cancelled,
        "lost": progress.lost,
        "requeued": progress.requeued,
        "is_sealed": progress.is_sealed,
        "ended": progress.ended,
        "queues": queues,
        "waits_for": waits.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "advice": ways,
    });
    let fields = [
        ("group", Some(id.to_string())),
        ("made", id.created().map(|at| text::instant(at, now))),
        ("state", Some(progress.ended.map_or("open", TaskState::as_str).to_owned())),
        ("members", Some(progress.to_string())),
        ("queues", Some(queues.join(", "))),
        ("waits for", progress.ended.is_none().then(|| waits.to_string())),
        ("go on", Some(ways.join("\n")).filter(|ways| !ways.is_empty())),
    ];
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
}
