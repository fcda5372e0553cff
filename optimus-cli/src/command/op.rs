//! `optimus op`: operations on many tasks.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{Operation, OperationAct, OperationError, OperationState};
use serde::Serialize;

use crate::{
    failure::{Exit, Failure},
    operation, operation_text,
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    parse,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum OpCommand {
    /// List the latest operations on many tasks, the latest first; the last 100 are kept.
    List {
        /// How many operations to list.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse::limit)]
        limit: usize,
    },
    /// Show one operation: which tasks it changes, how far it is, and what it could not change.
    Show { id: String },
    /// Carry an operation on until it is over, and print what was done.
    Follow { id: String },
    /// Confirm an operation that somebody has counted, and carry it on until it is over. The tasks
    /// are shown first. It can be confirmed within a day after it was counted, and changes only
    /// the tasks that it has counted.
    Confirm {
        id: String,
        /// Refuse if there is another number of tasks than this.
        #[arg(long, value_name = "N")]
        expect: Option<u64>,
    },
    /// Stop an operation, or drop one that is counted. What it has changed stays changed.
    Cancel { id: String },
    /// Requeue the tasks that an operation has cancelled, while they are kept. They are counted and
    /// shown first. Other operations can't be undone.
    Undo {
        id: String,
        /// Refuse if there is another number of tasks than this.
        #[arg(long, value_name = "N")]
        expect: Option<u64>,
    },
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct OpRow(Operation);

impl Row for OpRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("STATE"),
        Column::text("ACT"),
        Column::text("TASKS"),
        Column::number("MATCHED"),
        Column::number("DONE"),
        Column::number("REFUSED"),
        Column::number("GONE"),
        Column::number("LEFT"),
        Column::text("WHO"),
        Column::number("SINCE"),
        Column::text("WHY"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let Self(operation) = self;
        let state = Cell::new(operation.state.as_str());
        vec![
            Cell::new(&operation.id),
            match operation.state {
                OperationState::Failed => state.tone(Tone::Bad),
                OperationState::Running => state.tone(Tone::Warning),
                _ => state,
            },
            Cell::new(operation_text::word(operation.act)),
            Cell::new(operation_text::tasks(operation)),
            Cell::number(operation.matched),
            Cell::number(operation.done + operation.asked_to_stop),
            Cell::number(operation.refused),
            Cell::number(operation.gone),
            Cell::number(operation.left()),
            Cell::new(&operation.who),
            Cell::new(text::relative(operation.created, now)),
            Cell::new(&operation.reason),
        ]
    }
}

pub(crate) async fn run(command: OpCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    let operations = session.client.operations();
    match command {
        OpCommand::List { limit } => {
            let now = session.now().await?;
            let rows: Vec<_> = operations.list(limit).await?.into_iter().map(OpRow).collect();
            session.out.rows(&rows, now, "No operation is kept.")?;
            Ok(Exit::Done)
        }
        OpCommand::Show { id } => show(session, &id).await,
        OpCommand::Follow { id } => {
            let found = operation::counted(session, &id, Some(known(session, &id).await?)).await?;
            if found.state == OperationState::Counted {
                return Err(OperationError::WrongState {
                    id,
                    state: found.state,
                    what: "followed before somebody has confirmed it (`optimus op confirm`)",
                }
                .into());
            }
            operation::follow(session, &id).await
        }
        OpCommand::Confirm { id, expect } => {
            operation::confirm(session, known(session, &id).await?, expect).await
        }
        OpCommand::Cancel { id } => {
            let cancelling = operations.cancel(&id);
            let operation = session.audited("operation.cancel", &id, cancelling).await?;
            let changed = text::count(operation.done + operation.asked_to_stop, "task");
            let sentence = format!("operation {id} is cancelled; {changed} changed so far");
            session.out.done(&operation, &sentence)?;
            Ok(Exit::Done)
        }
        OpCommand::Undo { id, expect } => {
            let found = known(session, &id).await?;
            let Some(filter) = found.undo() else {
                let why = cant_be_undone(found.act);
                return Err(Failure::of(
                    Exit::Refused,
                    format!("operation {id} can't be undone: {why}"),
                ));
            };
            operation::undo(session, &found, filter, expect).await
        }
    }
}

/// Says why an operation that has cancelled no task can't be undone.
fn cant_be_undone(act: OperationAct) -> &'static str {
    match act {
        OperationAct::Delete => "what it has deleted is gone",
        OperationAct::Requeue => {
            "it has cancelled no task; `optimus task cancel` ends the tasks that it has made ready"
        }
        _ => "it has cancelled no task, and only cancelled tasks can go back",
    }
}

async fn known(session: &Session<'_>, id: &str) -> Result<Operation, Failure> {
    let found = session.client.operations().get(id).await?;
    Ok(found.ok_or_else(|| OperationError::Unknown { id: id.to_owned() })?)
}

async fn show(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let (operation, now) = (known(session, id).await?, session.now().await?);
    let problems = operation.problems.iter().map(|problem| problem.error.clone());
    let problems = problems.collect::<Vec<_>>().join("\n");
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    session.out.fields(
        &operation,
        &[
            ("operation", some(&operation.id)),
            ("what", some(&operation_text::what(&operation))),
            ("by", some(&operation.who)),
            ("why", some(&operation.reason)),
            ("added", Some(text::instant(operation.created, now))),
            ("changed", Some(text::instant(operation.updated, now))),
            ("confirm until", operation.confirm_until().map(|until| text::instant(until, now))),
            ("left", Some(text::number(operation.left()))),
            ("tasks", some(&operation::summary(&operation))),
            ("refused", some(&problems)),
            ("failed", operation.failure.clone()),
            ("not read", some(&operation.unread.join("\n"))),
        ],
    )?;
    Ok(Exit::Done)
}
