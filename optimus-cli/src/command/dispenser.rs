//! `optimus dispenser`: who holds which items.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{AssignedRow, AssigneeRow, HELD_MAX, OpenRow};
use serde::Serialize;
use serde_json::json;

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
pub(crate) enum DispenserCommand {
    /// List the dispensers that have items or were used within a day.
    List,
    /// Show the counts of a dispenser.
    Show {
        name: String,
        #[command(flatten)]
        times: Times,
    },
    /// List the items of the pool, the next one first.
    Open {
        name: String,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        times: Times,
    },
    /// List the items with assignees; the one whose time is over first is first.
    Assigned {
        name: String,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        times: Times,
    },
    /// List the assignees.
    Assignees {
        name: String,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        times: Times,
    },
    /// Give all items of an assignee back to the pool.
    Release {
        name: String,
        assignee: String,
        #[command(flatten)]
        times: Times,
    },
}

impl DispenserCommand {
    /// Returns the dispenser that the command reads or changes.
    fn of(&self) -> Option<(&str, &Times)> {
        match self {
            Self::List => None,
            Self::Show { name, times }
            | Self::Open { name, times, .. }
            | Self::Assigned { name, times, .. }
            | Self::Assignees { name, times, .. }
            | Self::Release { name, times, .. } => Some((name, times)),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rows {
    /// How many rows to leave out at the beginning.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// How many rows to list, at most 500.
    #[arg(long, value_name = "N", default_value_t = HELD_MAX, value_parser = parse::limit)]
    limit: usize,
}

/// The times of the programs that use the dispenser. Each call applies its own, so these must be
/// the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Times {
    /// How long an assignee may be silent, as your programs set it.
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "10m")]
    hold: Duration,
    /// How long an assignee may keep an item, as your programs set it.
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "1h")]
    hold_max: Duration,
}

#[derive(Debug, Serialize)]
struct Named {
    dispenser: String,
}

impl Row for Named {
    const COLUMNS: &'static [Column] = &[Column::text("DISPENSER")];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        vec![Cell::new(&self.dispenser)]
    }
}

#[derive(Debug, Serialize)]
struct OpenItem {
    id: String,
    waits_ms: i64,
    returns: u64,
    last_assignee: Option<String>,
}

impl Row for OpenItem {
    const COLUMNS: &'static [Column] = &[
        Column::text("ITEM"),
        Column::number("WAITS"),
        Column::number("CAME BACK"),
        Column::text("LAST ASSIGNEE"),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let waits = Duration::from_millis(u64::try_from(self.waits_ms).unwrap_or(0));
        vec![
            Cell::new(&self.id),
            Cell::new(text::duration(waits)),
            Cell::number(self.returns),
            Cell::or_dash(self.last_assignee.clone()),
        ]
    }
}

#[derive(Debug, Serialize)]
struct AssignedItem {
    id: String,
    assignee: String,
    #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds")]
    until: DateTime<Utc>,
}

impl Row for AssignedItem {
    const COLUMNS: &'static [Column] =
        &[Column::text("ITEM"), Column::number("UNTIL"), Column::text("ASSIGNEE")];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(&self.id),
            Cell::new(text::relative(self.until, now)),
            Cell::new(&self.assignee),
        ]
    }
}

#[derive(Debug, Serialize)]
struct HolderRow {
    assignee: String,
    items: u64,
    #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds")]
    until: DateTime<Utc>,
}

impl Row for HolderRow {
    const COLUMNS: &'static [Column] =
        &[Column::text("ASSIGNEE"), Column::number("ITEMS"), Column::number("UNTIL")];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(&self.assignee),
            Cell::number(self.items),
            Cell::new(text::relative(self.until, now)),
        ]
    }
}

pub(crate) async fn run(command: DispenserCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    if let Some((name, times)) = command.of() {
        check_name(session, name, times).await?;
    }
    let (now, out) = (session.now().await?, session.out);
    let of = |name: String, times: Times| {
        session.client.dispenser(name).hold(times.hold).hold_max(times.hold_max)
    };
    match command {
        DispenserCommand::List => {
            let names = session.client.dispenser_names().await?;
            let rows: Vec<_> = names.into_iter().map(|dispenser| Named { dispenser }).collect();
            out.rows(&rows, now, "No dispenser has items or was used within a day.")?;
            Ok(Exit::Done)
        }
        DispenserCommand::Show { name, times } => show(session, name, times).await,
        DispenserCommand::Open { name, rows, times } => {
            let row = |row: OpenRow| OpenItem {
                waits_ms: now.timestamp_millis() - row.rank_ms,
                id: row.id,
                returns: row.returns,
                last_assignee: row.last_assignee,
            };
            let found = of(name, times).open_items(rows.skip, rows.limit).await?;
            let rows: Vec<_> = found.into_iter().map(row).collect();
            out.rows(&rows, now, "The pool is empty.")?;
            Ok(Exit::Done)
        }
        DispenserCommand::Assigned { name, rows, times } => {
            let row = |AssignedRow { id, assignee, until }| AssignedItem { id, assignee, until };
            let found = of(name, times).assigned_items(rows.skip, rows.limit).await?;
            let rows: Vec<_> = found.into_iter().map(row).collect();
            out.rows(&rows, now, "No item is assigned.")?;
            Ok(Exit::Done)
        }
        DispenserCommand::Assignees { name, rows, times } => {
            let row =
                |AssigneeRow { name, until, items }| HolderRow { assignee: name, items, until };
            let found = of(name, times).assignees(rows.skip, rows.limit).await?;
            let rows: Vec<_> = found.into_iter().map(row).collect();
            out.rows(&rows, now, "There is no assignee.")?;
            Ok(Exit::Done)
        }
        DispenserCommand::Release { name, assignee, times } => {
            let question = format!("Give all items of {assignee} back to the pool of {name}?");
            session.consent.ask(&question)?;
            let object = json!({ "dispenser": name, "assignee": assignee, "done": "released" });
            let target = format!("{name} {assignee}");
            let dispenser = of(name, times);
            session.audited("dispenser.release", target, dispenser.release(&assignee)).await?;
            out.done(&object, &format!("the items of {assignee} are back in the pool"))?;
            Ok(Exit::Done)
        }
    }
}

/// Refuses a name that no program has used, before anything is asked or changed.
async fn check_name(session: &Session<'_>, name: &str, times: &Times) -> Result<(), Failure> {
    let dispenser = session.client.dispenser(name).hold(times.hold).hold_max(times.hold_max);
    if dispenser.peek().await?.is_known {
        return Ok(());
    }
    let known = session.client.dispenser_names().await?;
    let known = text::known(&known, "no program has added items to a dispenser");
    Err(Failure::not_found(format!("no program has ever added items to {name}; {known}")))
}

async fn show(session: &Session<'_>, name: String, times: Times) -> Result<Exit, Failure> {
    let dispenser = session.client.dispenser(&name).hold(times.hold).hold_max(times.hold_max);
    let found = dispenser.peek().await?;
    let object = json!({
        "dispenser": name,
        "open": found.open,
        "assigned": found.assigned,
        "assignees": found.assignees,
        "first_waits_ms": found.first_waits.map(|wait| u64::try_from(wait.as_millis()).ok()),
        "is_rebuilding": found.is_rebuilding,
    });
    let fields = [
        ("dispenser", Some(name)),
        ("open", Some(text::number(found.open))),
        ("first waits", found.first_waits.map(text::duration)),
        ("assigned", Some(text::number(found.assigned))),
        ("assignees", Some(text::number(found.assignees))),
        ("rebuild", found.is_rebuilding.then(|| "open".to_owned())),
    ];
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
}
