//! `optimus worker`: workers, and what they run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{QueueName, TaskId, WorkerDescription, WorkerDetails};
use serde::Serialize;
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        table::{Cell, Column},
        text,
    },
    queue_names::QueueNames,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// List the workers: where they run, what they serve, and how busy they are.
    List {
        #[command(flatten)]
        queues: QueueNames,
    },
    /// Show one worker, the tasks that it runs, and what keeps it from claiming.
    Show {
        /// The id of the worker, as `worker list` prints it.
        id: String,
    },
}

/// A worker over all its queues. Its ids differ where it has lost a lease.
#[derive(Debug, Serialize)]
struct WorkerRow {
    id: String,
    host: String,
    pid: u32,
    #[serde(rename = "started_ms", with = "chrono::serde::ts_milliseconds")]
    started: DateTime<Utc>,
    running: usize,
    slots: usize,
    #[serde(rename = "lease_until_ms", with = "chrono::serde::ts_milliseconds")]
    lease_until: DateTime<Utc>,
    queues: Vec<QueueName>,
    #[serde(skip)]
    tasks: Vec<TaskId>,
    #[serde(skip)]
    description: WorkerDescription,
}

impl Row for WorkerRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("WORKER"),
        Column::text("HOST"),
        Column::number("PID"),
        Column::number("STARTED"),
        Column::number("BUSY"),
        Column::number("LEASE"),
        Column::text("QUEUES"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let queues: Vec<&str> = self.queues.iter().map(QueueName::as_str).collect();
        vec![
            Cell::new(&self.id),
            Cell::new(&self.host),
            Cell::new(self.pid.to_string()),
            Cell::new(text::relative(self.started, now)),
            Cell::new(format!("{}/{}", self.running, self.slots)),
            Cell::new(if self.lease_until > now {
                text::relative(self.lease_until, now)
            } else {
                "over".to_owned()
            }),
            Cell::new(queues.join(", ")),
        ]
    }
}

pub(crate) async fn run(command: WorkerCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        WorkerCommand::List { queues } => {
            let now = session.now().await?;
            let rows = workers(session, queues.named()).await?;
            session.known_if_empty(&rows, queues.named()).await?;
            session.out.rows(&rows, now, "No worker is registered.")?;
            Ok(Exit::Done)
        }
        WorkerCommand::Show { id } => show(session, &id).await,
    }
}

/// Reads all workers, each once.
async fn workers(session: &Session<'_>, queues: &[QueueName]) -> Result<Vec<WorkerRow>, Failure> {
    let queues = session.queues(queues).await?;
    let read = async |inspector: optimus_core::Inspector, queue: QueueName| {
        let workers = inspector.workers(&queue).await?;
        Ok(workers.into_iter().map(|worker| (queue.clone(), worker)).collect::<Vec<_>>())
    };
    let seen = session.each_queue(&queues, read).await?;
    let mut rows = BTreeMap::new();
    for (queue, worker) in seen.into_iter().flatten() {
        let WorkerDetails { id, description, lease_until, running, .. } = worker;
        let row = rows.entry(id.to_string()).or_insert_with(|| WorkerRow {
            id: id.to_string(),
            host: description.host.clone(),
            pid: description.pid,
            started: description.started,
            running: 0,
            slots: description.concurrency,
            lease_until,
            queues: Vec::new(),
            tasks: Vec::new(),
            description,
        });
        row.running += running.len();
        row.lease_until = row.lease_until.min(lease_until);
        row.queues.push(queue);
        row.tasks.extend(running);
    }
    Ok(rows.into_values().collect())
}

async fn show(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let rows = workers(session, &[]).await?;
    let Some(row) = rows.into_iter().find(|row| row.id == id) else {
        return Err(Failure::not_found(format!(
            "no worker {id} is registered; `optimus worker list` has the ids"
        )));
    };
    let (now, mut waits) = (session.now().await?, Vec::new());
    let worker = row.id.parse()?;
    for queue in &row.queues {
        let found = session.inspector().explain_worker(queue, &worker).await?;
        waits.push(format!("{queue}: {}", found.to_string().replace('\n', "\n  ")));
    }
    let running: Vec<String> = row.tasks.iter().map(ToString::to_string).collect();
    let queues: Vec<&str> = row.queues.iter().map(QueueName::as_str).collect();
    let object = json!({
        "id": row.id,
        "name": row.description.name,
        "host": row.host,
        "pid": row.pid,
        "started_ms": row.started.timestamp_millis(),
        "slots": row.slots,
        "lease_until_ms": row.lease_until.timestamp_millis(),
        "queues": queues,
        "tasks": row.description.tasks,
        "running": running,
        "waits_for": waits,
    });
    let fields = [
        ("worker", Some(row.id.clone())),
        ("name", row.description.name.clone()),
        ("host", Some(row.host.clone())),
        ("pid", Some(row.pid.to_string())),
        ("started", Some(text::instant(row.started, now))),
        ("lease", Some(text::instant(row.lease_until, now))),
        ("slots", Some(format!("{} of {} in use", row.running, row.slots))),
        ("queues", Some(queues.join(", "))),
        ("knows", Some(row.description.tasks.join(", "))),
        ("runs", Some(running.join("\n"))),
        ("waits for", Some(waits.join("\n"))),
    ];
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
}
