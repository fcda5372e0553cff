//! `optimus queue`: what waits in queues, and pauses.

use chrono::{DateTime, Utc};
use clap::{Subcommand, ValueEnum};
use optimus_core::{
    Error, ForgetAnswer, Gate, OperationAct, QueueAnswer, QueueName, QueueOverview, TaskState,
};
use serde::Serialize;
use serde_json::json;

use super::queue_show;
use crate::{
    advice::advice,
    failure::{Exit, Failure},
    operation,
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    page::Filter,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List all queues with their counts.
    List {
        /// The order of the rows.
        #[arg(long, value_name = "COLUMN", default_value = "name")]
        sort: Sort,
    },
    /// Show one queue: its counts, its workers, and what keeps its tasks waiting.
    Show { queue: QueueName },
    /// Stop the claims of a queue. Running tasks continue.
    Pause { queue: QueueName },
    /// Restart the claims of a queue.
    Resume { queue: QueueName },
    /// Delete the waiting tasks of a queue, or those in other states. This can't be undone.
    Clear {
        queue: QueueName,
        /// The states of the tasks to delete; may be repeated. A task that runs stays.
        #[arg(long = "state", value_name = "STATE", default_values = WAITING)]
        states: Vec<TaskState>,
        #[command(flatten)]
        filter: Filter,
        /// Refuse if there is another number of tasks than this.
        #[arg(long, value_name = "N")]
        expect: Option<u64>,
    },
    /// Remove an empty queue from the list. A queue that is used again comes back by itself.
    Forget { queue: QueueName },
}

/// What `clear` deletes.
const WAITING: [&str; 4] = ["ready", "delayed", "retry", "blocked"];

/// The order of queues.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Sort {
    Name,
    Ready,
    Oldest,
    Working,
    Dead,
}

pub(crate) async fn run(command: QueueCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        QueueCommand::List { sort } => list(session, sort).await,
        QueueCommand::Show { queue } => Box::pin(queue_show::show(session, &queue)).await,
        QueueCommand::Pause { queue } => {
            let gate = session.client.gate(&queue, Gate::Queue);
            let pausing = gate.pause(&session.by, &session.reason);
            let answer = session.audited("queue.pause", &queue, pausing).await?;
            let known = if answer.is_known { QueueAnswer::Known } else { QueueAnswer::Unknown };
            changed(session, &queue, "paused", known)
        }
        QueueCommand::Resume { queue } => {
            let resuming = session.client.resume(&queue);
            let answer = session.audited("queue.resume", &queue, resuming).await?;
            changed(session, &queue, "resumed", answer)
        }
        QueueCommand::Clear { queue, states, filter, expect } => {
            clear(session, &queue, &states, &filter, expect).await
        }
        QueueCommand::Forget { queue } => forget(session, &queue).await,
    }
}

/// A queue in the list.
#[derive(Debug, Serialize)]
struct QueueRow {
    queue: QueueName,
    ready: u64,
    /// The age of the first ready task.
    oldest_ms: Option<u64>,
    working: u64,
    blocked: u64,
    delayed: u64,
    retry: u64,
    dead: u64,
    cancelled: u64,
    paused: bool,
}

impl Row for QueueRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("QUEUE"),
        Column::number("READY"),
        Column::number("OLDEST"),
        Column::number("WORKING"),
        Column::number("BLOCKED"),
        Column::number("DELAYED"),
        Column::number("RETRY"),
        Column::number("DEAD"),
        Column::number("CANCELLED"),
        Column::text(""),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let oldest = self.oldest_ms.map(std::time::Duration::from_millis).map(text::duration);
        let dead = Cell::number(self.dead);
        let mut cells = vec![
            Cell::new(&self.queue),
            Cell::number(self.ready),
            Cell::or_dash(oldest),
            Cell::number(self.working),
            Cell::number(self.blocked),
            Cell::number(self.delayed),
            Cell::number(self.retry),
            if self.dead > 0 { dead.tone(Tone::Bad) } else { dead },
            Cell::number(self.cancelled),
        ];
        cells.push(Cell::new(if self.paused { "paused" } else { "" }).tone(Tone::Warning));
        cells
    }
}

async fn list(session: &Session<'_>, sort: Sort) -> Result<Exit, Failure> {
    let (queues, now) = (session.queues(&[]).await?, session.now().await?);
    let read = async |inspector: optimus_core::Inspector, queue: QueueName| -> Result<_, Error> {
        let mut seen = inspector.overview(std::slice::from_ref(&queue)).await?.remove(0);
        seen.problem.take().map_or_else(|| Ok(row(queue, &seen)), Err)
    };
    let mut rows = session.each_queue(&queues, read).await?;
    let by = std::cmp::Reverse::<u64>;
    match sort {
        Sort::Name => {}
        Sort::Ready => rows.sort_by_key(|row| by(row.ready)),
        Sort::Oldest => rows.sort_by_key(|row| by(row.oldest_ms.unwrap_or(0))),
        Sort::Working => rows.sort_by_key(|row| by(row.working)),
        Sort::Dead => rows.sort_by_key(|row| by(row.dead)),
    }
    session.out.rows(&rows, now, "There is no queue: no task was submitted to this namespace.")?;
    Ok(Exit::Done)
}

fn row(queue: QueueName, seen: &QueueOverview) -> QueueRow {
    let counts = &seen.counts;
    QueueRow {
        queue,
        ready: counts.ready,
        oldest_ms: seen.oldest.and_then(|oldest| u64::try_from(oldest.as_millis()).ok()),
        working: counts.working,
        blocked: counts.blocked,
        delayed: counts.delayed,
        retry: counts.retry,
        dead: counts.dead,
        cancelled: counts.cancelled,
        paused: counts.paused,
    }
}

fn changed(
    session: &Session<'_>,
    queue: &QueueName,
    what: &str,
    known: QueueAnswer,
) -> Result<Exit, Failure> {
    let is_known = known == QueueAnswer::Known;
    let answer = json!({ "queue": queue, "done": what, "known": is_known });
    session.out.done(&answer, &format!("queue {queue} is {what}"))?;
    if !is_known {
        session
            .out
            .hint("no task was ever in this queue, and no worker served it: is its name misspelt?");
    }
    Ok(Exit::Done)
}

async fn clear(
    session: &Session<'_>,
    queue: &QueueName,
    states: &[TaskState],
    filter: &Filter,
    expected: Option<u64>,
) -> Result<Exit, Failure> {
    if let Some(state) =
        states.iter().find(|state| matches!(state, TaskState::Working | TaskState::Success))
    {
        let problem = match state {
            TaskState::Working => "cancel them, and delete them when they have ended",
            _ => "they have no data left, and their summaries leave by themselves",
        };
        return Err(Failure::usage(format!("tasks in state {state} can't be deleted: {problem}")));
    }
    let filter = filter.of(std::slice::from_ref(queue), states)?;
    let question = |count: &str| format!("Delete {count} of queue {queue}, forever?");
    operation::change(session, OperationAct::Delete, filter, expected, question).await
}

async fn forget(session: &Session<'_>, queue: &QueueName) -> Result<Exit, Failure> {
    session.known(std::slice::from_ref(queue)).await?;
    let forgetting = async {
        match session.client.forget_queue(queue).await? {
            ForgetAnswer::Forgotten => Ok(()),
            _ => Err(still_used(queue)),
        }
    };
    session.audited("queue.forget", queue, forgetting).await?;
    let answer = json!({ "queue": queue, "done": "forgotten" });
    session.out.done(&answer, &format!("queue {queue} is forgotten"))?;
    Ok(Exit::Done)
}

fn still_used(queue: &QueueName) -> Failure {
    Failure::of(
        Exit::Refused,
        format!(
            "queue {queue} is still used: it has tasks, workers, schedules, groups, limits or a \
             pause, or a client has submitted to it lately. {} says \
             more. A queue that nobody uses for a day is forgotten by itself.",
            advice("queue show", [queue])
        ),
    )
}
