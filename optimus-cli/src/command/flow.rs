//! `optimus flow`: what a task waits for, and what that waits for.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{FlowCancelled, Key, Prerequisite, PrerequisiteDetails, TaskId, TaskState};
use serde::Serialize;
use serde_json::json;

use super::task_row::tone;
use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        table::{Cell, Column},
        text,
    },
    session::Session,
};

/// How many steps are shown.
const STEPS_MAX: usize = 200;

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Show a task, what it waits for or has waited for, and what that has waited for. Nothing of
    /// this is kept for a task that has succeeded.
    Show {
        /// The id of the last step: queue/uuid, or the uuid alone.
        id: String,
    },
    /// Cancel steps of a flow that have not ended, groups with their members. It is refused if all
    /// of them have ended.
    Cancel {
        /// The ids of the steps: queue/uuid, or the uuid alone.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// A step, or what a step waits for.
#[derive(Debug, Serialize)]
struct StepRow {
    /// How many steps are between it and the first row.
    depth: usize,
    id: Option<TaskId>,
    /// What it is called where it has no id: it was not submitted yet.
    name: String,
    task: Option<String>,
    state: TaskState,
    is_met: bool,
    group: Option<String>,
}

impl Row for StepRow {
    const COLUMNS: &'static [Column] =
        &[Column::text("STEP"), Column::text("TASK"), Column::text("STATE"), Column::text("")];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let indent = "  ".repeat(self.depth.min(20));
        let note = match (&self.group, self.state, self.is_met) {
            (Some(group), _, _) => group.clone(),
            (None, TaskState::Forgotten, true) => "has ended, and is no longer kept".to_owned(),
            (None, TaskState::Forgotten, false) => {
                "not submitted yet, or no longer kept".to_owned()
            }
            (None, _, _) => String::new(),
        };
        let state = if self.group.is_some() { "group" } else { self.state.as_str() };
        vec![
            Cell::new(format!("{indent}{}", self.name)),
            Cell::or_dash(self.task.clone()),
            Cell::new(state).tone(tone(self.state)),
            Cell::new(note),
        ]
    }
}

pub(crate) async fn run(command: FlowCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        FlowCommand::Show { id } => show(session, &id).await,
        FlowCommand::Cancel { ids } => {
            let mut steps = Vec::new();
            for id in ids {
                steps.push(session.task_id(&id).await?);
            }
            let count = text::count(steps.len() as u64, "step");
            session.consent.ask(&format!("Cancel {count}?"))?;
            let target = steps.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" ");
            let cancelling = session.client.cancel_flow(steps);
            let done = session.audited_as("flow.cancel", target, cancelling, in_words).await?;
            print(session, &done)
        }
    }
}

/// Prints what a cancel has done. A step that has ended is no failure if another one is cancelled.
fn print(session: &Session<'_>, done: &FlowCancelled) -> Result<Exit, Failure> {
    let FlowCancelled { cancelled, asked_to_stop, ended, .. } = done;
    let before = ended.iter().map(|(id, state)| json!({ "id": id, "state": state }));
    let object = json!({
        "cancelled": cancelled,
        "asked_to_stop": asked_to_stop,
        "ended": before.collect::<Vec<_>>(),
    });
    session.out.done(&object, &in_words(done))?;
    for (id, state) in ended {
        session.out.hint(&match state {
            TaskState::Forgotten => format!("  nothing is stored of {id}"),
            state => format!("  {id} is {state}, so cancel is not possible"),
        });
    }
    let is_changed = !cancelled.is_empty() || !asked_to_stop.is_empty();
    Ok(if is_changed { Exit::Done } else { Exit::Refused })
}

/// Returns how many steps a cancel has changed, and how many not.
fn in_words(done: &FlowCancelled) -> String {
    let FlowCancelled { cancelled, asked_to_stop, ended, .. } = done;
    let unknown = ended.iter().filter(|(_, state)| *state == TaskState::Forgotten).count();
    let others = [
        (asked_to_stop.len(), "asked to stop"),
        (ended.len() - unknown, "ended before"),
        (unknown, "gone"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    let mut parts =
        vec![format!("{}: {} cancelled", text::count(count_of(done), "step"), cancelled.len())];
    parts.extend(others.map(|(count, what)| format!("{count} {what}")));
    parts.join(" · ")
}

fn count_of(done: &FlowCancelled) -> u64 {
    (done.cancelled.len() + done.asked_to_stop.len() + done.ended.len()) as u64
}

async fn show(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let id = session.task_id(id).await?;
    let Some(found) = session.inspector().get(&id).await? else {
        return Err(Failure::not_found(format!("nothing is stored of {id}")));
    };
    let (now, mut seen, mut rows) = (session.now().await?, HashSet::new(), Vec::new());
    // The rows that come next, the first one last.
    let mut next = vec![StepRow {
        depth: 0,
        name: id.to_string(),
        id: Some(id),
        task: found.record.and_then(Result::ok).map(|record| record.task),
        state: found.state,
        is_met: false,
        group: None,
    }];
    while let Some(row) = next.pop() {
        if let Some(id) = row.id.as_ref()
            && seen.len() < STEPS_MAX
            && seen.insert(id.clone())
        {
            for found in session.inspector().prerequisites(id).await?.into_iter().rev() {
                next.push(step(session, row.depth + 1, found).await?);
            }
        }
        rows.push(row);
    }
    session.out.rows(&rows, now, "It waits for nothing.")?;
    if seen.len() >= STEPS_MAX {
        session.out.hint(&format!("only {STEPS_MAX} steps are shown"));
    }
    Ok(Exit::Done)
}

/// Reads what a prerequisite is.
async fn step(
    session: &Session<'_>,
    depth: usize,
    found: PrerequisiteDetails,
) -> Result<StepRow, Failure> {
    let (name, id) = match &found.prerequisite {
        Prerequisite::Task(id) => (id.to_string(), Some(id.clone())),
        Prerequisite::Key { queue, task, biz_id } => {
            let key = Key::new(queue.as_str(), task, biz_id);
            (format!("{queue}/{task} {biz_id:?}"), session.inspector().find(&key).await?)
        }
    };
    let details = match &id {
        Some(id) => session.inspector().get(id).await?,
        None => None,
    };
    let task =
        details.and_then(|details| details.record).and_then(Result::ok).map(|record| record.task);
    Ok(StepRow {
        depth,
        id,
        name,
        task,
        state: found.state,
        is_met: found.is_met,
        group: found.group.map(|group| group.to_string()),
    })
}
