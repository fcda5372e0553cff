//! `optimus audit`: what operators have done.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{AuditCursor, AuditRow, PAGE_MAX};
use serde::Serialize;

use crate::{
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
pub(crate) enum AuditCommand {
    /// List what operators have done by the console and by this program, the latest first. The
    /// last 10,000 acts of 180 days are kept.
    List {
        /// How many acts to list.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse::limit)]
        limit: usize,
        /// Begin after this place, which the list before has named.
        #[arg(long, value_name = "CURSOR")]
        after: Option<AuditCursor>,
    },
}

/// An act.
#[derive(Debug, Serialize)]
struct ActRow {
    id: String,
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
    who: String,
    act: String,
    target: String,
    reason: String,
    /// What became of it; `None` if this is not known.
    outcome: Option<String>,
}

impl From<AuditRow> for ActRow {
    fn from(row: AuditRow) -> Self {
        let AuditRow { id, at, act, outcome, .. } = row;
        let (who, target, reason) = (act.who, act.target, act.reason);
        Self { id, at, who, act: act.act, target, reason, outcome }
    }
}

impl Row for ActRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("WHEN"),
        Column::text("WHO"),
        Column::text("ACT"),
        Column::text("OF"),
        Column::text("WHY"),
        Column::text("OUTCOME"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let reason = Some(self.reason.clone()).filter(|reason| !reason.is_empty());
        vec![
            Cell::new(text::relative(self.at, now)),
            Cell::new(&self.who),
            Cell::new(&self.act),
            Cell::new(&self.target),
            Cell::or_dash(reason),
            Cell::new(self.outcome.as_deref().unwrap_or("not known")),
        ]
    }
}

pub(crate) async fn run(command: AuditCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    let AuditCommand::List { limit, mut after } = command;
    let (now, mut rows) = (session.now().await?, Vec::<ActRow>::new());
    loop {
        let count = (limit - rows.len()).min(PAGE_MAX);
        let page = session.inspector().audit(after.as_ref(), count).await?;
        rows.extend(page.rows.into_iter().map(ActRow::from));
        after = page.next;
        if after.is_none() || rows.len() >= limit {
            break;
        }
    }
    session.out.rows(&rows, now, "Nobody has acted yet.")?;
    if let Some(after) = after {
        session.out.more(&format!("more: --after {after}"));
    }
    Ok(Exit::Done)
}
