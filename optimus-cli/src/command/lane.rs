//! `optimus lane`: lanes in which tasks wait, and their widths.

use std::slice;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{Gate, LaneDetails, PAGE_MAX, QueueName, TaskId};
use serde::Serialize;
use serde_json::json;

use crate::{
    advice::advice,
    failure::{Exit, Failure},
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    parse,
    pause::Pause,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum LaneCommand {
    /// List the lanes in which tasks wait; the one that waits longest is first.
    List {
        queue: QueueName,
        /// How many lanes to list, at most 128.
        #[arg(long, value_name = "N", default_value_t = PAGE_MAX, value_parser = parse::limit)]
        limit: usize,
    },
    /// Set how many tasks of a lane may run at once, or print it.
    Width {
        queue: QueueName,
        /// The key of the lane.
        key: String,
        /// The width; without it, the width that was set is printed.
        width: Option<u16>,
        /// Remove the width that was set, so that those of the tasks apply.
        #[arg(long, conflicts_with = "width")]
        reset: bool,
    },
    /// Stop the starts of a lane's tasks. Running tasks continue.
    Pause { queue: QueueName, key: String },
    /// Restart them.
    Resume { queue: QueueName, key: String },
    /// Cancel the tasks of a lane that wait, and ask those that run to stop.
    Cancel { queue: QueueName, key: String },
}

#[derive(Debug, Serialize)]
struct LaneRow {
    lane: String,
    waiting: u64,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    width_set: Option<u16>,
    holders: Vec<TaskId>,
    /// Those of the holders that are dead.
    dead: Vec<TaskId>,
    paused: bool,
    pause: Option<Pause>,
}

impl Row for LaneRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("LANE"),
        Column::number("WAITING"),
        Column::number("SINCE"),
        Column::number("WIDTH SET"),
        Column::text("WAITS FOR"),
        Column::text(""),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let dead = |id: &TaskId| if self.dead.contains(id) { " (dead)" } else { "" };
        let holder = |id: &TaskId| format!("{}{}", id.uuid(), dead(id));
        let holders: Vec<String> = self.holders.iter().map(holder).collect();
        let paused = self.pause.as_ref().map(|pause| pause.at(now));
        vec![
            Cell::new(&self.lane),
            Cell::number(self.waiting),
            Cell::new(text::relative(self.since, now)),
            Cell::or_dash(self.width_set.map(|width| width.to_string())),
            Cell::new(holders.join(", ")),
            Cell::new(paused.unwrap_or_default()).tone(Tone::Warning),
        ]
    }
}

pub(crate) async fn run(command: LaneCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        LaneCommand::List { queue, limit } => list(session, &queue, limit).await,
        LaneCommand::Width { queue, key, width, reset } => {
            let change =
                if reset { Change::Reset } else { width.map_or(Change::None, Change::Set) };
            set_width(session, &queue, &key, change).await
        }
        LaneCommand::Pause { queue, key } => {
            super::limit::pause(session, &queue, Gate::Lane(key)).await
        }
        LaneCommand::Resume { queue, key } => {
            super::limit::resume(session, &queue, Gate::Lane(key)).await
        }
        LaneCommand::Cancel { queue, key } => cancel(session, &queue, &key).await,
    }
}

async fn list(session: &Session<'_>, queue: &QueueName, limit: usize) -> Result<Exit, Failure> {
    let now = session.now().await?;
    let lanes = session.inspector().lanes(queue, limit).await?;
    let row = |lane: LaneDetails| LaneRow {
        lane: lane.key,
        waiting: lane.waiting,
        since: lane.since,
        width_set: lane.width_set.map(std::num::NonZeroU16::get),
        holders: lane.holders,
        dead: lane.dead,
        paused: lane.shut.is_some(),
        pause: lane.shut.as_ref().map(Pause::of),
    };
    let rows: Vec<LaneRow> = lanes.into_iter().map(row).collect();
    session.known_if_empty(&rows, slice::from_ref(queue)).await?;
    session.out.rows(&rows, now, "No task waits in a lane.")?;
    if rows.len() >= limit.min(PAGE_MAX) {
        let more = if limit < PAGE_MAX { "; --limit shows more" } else { "" };
        session.out.more(&format!("queue {queue} may have more lanes than these{more}"));
    }
    Ok(Exit::Done)
}

enum Change {
    None,
    Set(u16),
    Reset,
}

async fn set_width(
    session: &Session<'_>,
    queue: &QueueName,
    key: &str,
    change: Change,
) -> Result<Exit, Failure> {
    let (lane, target) = (session.client.lane(queue, key), format!("{queue} {key}"));
    let (answer, set) = match change {
        Change::None => (None, lane.width().await?),
        Change::Set(0) => {
            let pause = advice("lane pause", [queue.as_str(), key]);
            return Err(Failure::usage(format!(
                "the width of a lane is 1 or more; {pause} stops the starts of its tasks"
            )));
        }
        Change::Set(width) => {
            let setting = lane.set_width(width);
            (Some(session.audited("lane.width", &target, setting).await?), Some(width))
        }
        Change::Reset => {
            (Some(session.audited("lane.reset_width", &target, lane.reset_width()).await?), None)
        }
    };
    let object = json!({
        "queue": queue,
        "lane": key,
        "width_set": set,
        "before": answer.and_then(|answer| answer.before),
        "has_tasks": answer.map(|answer| answer.has_tasks),
    });
    let width = set.map_or_else(|| "that of its tasks".to_owned(), |width| width.to_string());
    let found = answer.map_or_else(String::new, |answer| format!("; it {answer}"));
    session.out.done(&object, &format!("the width of lane {key} is {width}{found}"))?;
    Ok(Exit::Done)
}

async fn cancel(session: &Session<'_>, queue: &QueueName, key: &str) -> Result<Exit, Failure> {
    session.consent.ask(&format!("Cancel the tasks of lane {key} of queue {queue}?"))?;
    let cancelling = session.client.cancel_lane(queue, key);
    let done = session.audited("lane.cancel", format_args!("{queue} {key}"), cancelling).await?;
    let object = json!({
        "queue": queue,
        "lane": key,
        "cancelled": done.cancelled,
        "asked_to_stop": done.asked_to_stop,
    });
    let (cancelled, asked) = (text::number(done.cancelled), text::number(done.asked_to_stop));
    session.out.done(&object, &format!("{cancelled} cancelled · {asked} asked to stop"))?;
    Ok(Exit::Done)
}
