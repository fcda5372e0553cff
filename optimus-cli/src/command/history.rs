//! `optimus history`: what succeeded and died on a day, and what queues keep of it.

use std::{slice, str::FromStr};

use chrono::{DateTime, Days, NaiveDate, Utc};
use clap::{Args, Subcommand};
use optimus_core::{
    HistoryCursor, HistoryDay, HistoryDetails, HistoryFilter, HistoryOptions, PAGE_MAX,
    QueueAnswer, QueueName, TaskState,
};
use serde::Serialize;
use serde_json::json;

use super::history_row::HistoryRecordRow;
use crate::{
    advice::advice,
    failure::{Exit, Failure},
    output::{
        Row,
        table::{Cell, Column},
        text,
    },
    parse,
    session::Session,
};

/// How many tasks a list without `--all` looks at.
const SCANNED_MAX: u64 = 200_000;

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// List the tasks of a queue that succeeded or died on a day: deaths first, then successes.
    List(List),
    /// Show what a queue keeps, and which days it has.
    Show { queue: QueueName },
    /// Let a queue keep a line for each task that succeeds or dies from now on.
    Keep(Keep),
    /// Let a queue keep no more lines. Those that it has stay for their time. This prevails over
    /// what code declares, until `keep` or `remove`.
    Stop { queue: QueueName },
    /// Remove all that a queue has kept, and let it keep no more. This can't be undone.
    Remove { queue: QueueName },
}

#[derive(Debug, Args)]
pub(crate) struct List {
    queue: QueueName,
    /// The day, in UTC: `today`, `yesterday`, or such as `2026-10-03`.
    #[arg(long, value_name = "DAY", default_value = "today")]
    day: Day,
    /// Tasks of this name.
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Only these: `success` or `dead`.
    #[arg(long, value_name = "STATE")]
    state: Option<TaskState>,
    /// How many tasks to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse::limit)]
    limit: usize,
    /// Begin after this place, which the list before has named. It needs the same day and state.
    #[arg(long, value_name = "CURSOR")]
    after: Option<HistoryCursor>,
    /// List all tasks, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Keep {
    queue: QueueName,
    /// For how many days, today included: up to 366.
    #[arg(long, value_name = "N", default_value_t = 180)]
    days: u32,
    /// How large it may grow, such as `256MB`, and at least 1MiB; the oldest lines leave first. A
    /// success takes about 80 bytes.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse::size)]
    size: u64,
    /// Only tasks of this name; may be repeated.
    #[arg(long = "task", value_name = "NAME")]
    tasks: Vec<String>,
}

/// A day of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Day {
    Today,
    Yesterday,
    Of(NaiveDate),
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "today" => Ok(Self::Today),
            "yesterday" => Ok(Self::Yesterday),
            date => date.parse().map(Self::Of).map_err(|_| {
                format!("{date:?} is not a day; write today, yesterday or such as 2026-10-03")
            }),
        }
    }
}

impl Day {
    fn at(self, now: DateTime<Utc>) -> NaiveDate {
        match self {
            Self::Today => now.date_naive(),
            Self::Yesterday => (now - Days::new(1)).date_naive(),
            Self::Of(day) => day,
        }
    }
}

pub(crate) async fn run(command: HistoryCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        HistoryCommand::List(options) => list(session, options).await,
        HistoryCommand::Show { queue } => show(session, &queue).await,
        HistoryCommand::Keep(Keep { queue, days, size, tasks }) => {
            let mut options = HistoryOptions::days(days).bytes(size);
            if !tasks.is_empty() {
                options = options.tasks(tasks);
            }
            let keeping = session.client.keep_history(&queue, &options);
            session.audited("history.keep", &queue, keeping).await?;
            let object = json!({ "queue": queue, "done": "kept", "options": options });
            session.out.done(&object, &format!("queue {queue} keeps {}", kept(&options)))?;
            Ok(Exit::Done)
        }
        HistoryCommand::Stop { queue } => {
            let stopping = session.client.stop_history(&queue);
            let answer = session.audited("history.stop", &queue, stopping).await?;
            changed(session, &queue, answer, "stopped", "keeps no more lines")
        }
        HistoryCommand::Remove { queue } => {
            session.consent.ask(&format!("Remove the history of queue {queue}, forever?"))?;
            let removing = session.client.remove_history(&queue);
            let answer = session.audited("history.remove", &queue, removing).await?;
            changed(session, &queue, answer, "removed", "has no history")
        }
    }
}

fn changed(
    session: &Session<'_>,
    queue: &QueueName,
    answer: QueueAnswer,
    done: &str,
    sentence: &str,
) -> Result<Exit, Failure> {
    if answer == QueueAnswer::Unknown {
        return Err(Failure::not_found(format!("queue {queue} keeps no history")));
    }
    let object = json!({ "queue": queue, "done": done });
    session.out.done(&object, &format!("queue {queue} {sentence}"))?;
    Ok(Exit::Done)
}

async fn list(session: &Session<'_>, options: List) -> Result<Exit, Failure> {
    let List { queue, day, task, state, limit, after, all } = options;
    let now = session.now().await?;
    let mut filter = HistoryFilter::day(day.at(now));
    if let Some(task) = task {
        filter = filter.task(task);
    }
    if let Some(state) = state {
        filter = filter.state(state);
    }
    let limit = if all { usize::MAX } else { limit };
    let (mut rows, mut scanned, mut place) = (Vec::new(), 0, after);
    loop {
        let wanted = (limit - rows.len()).min(PAGE_MAX);
        let page = session.inspector().history(&queue, &filter, place.as_ref(), wanted).await?;
        rows.extend(page.rows.iter().map(HistoryRecordRow::of));
        scanned += page.scanned;
        place = page.next;
        if place.is_none() || rows.len() >= limit || (!all && scanned >= SCANNED_MAX) {
            break;
        }
    }
    session.known_if_empty(&rows, slice::from_ref(&queue)).await?;
    if !rows.is_empty() && is_unset(session, &queue).await? {
        session.out.hint(&format!(
            "this queue keeps no history: these are its last successes; {} keeps one",
            advice("history keep", [&queue])
        ));
    }
    session.out.rows(
        &rows,
        now,
        "No such task ended on that day, or the queue kept no history.",
    )?;
    if let Some(place) = place {
        let looked = text::count(scanned, "task");
        session.out.more(&format!("{looked} looked at; more: --after {place}"));
    }
    Ok(Exit::Done)
}

/// Returns whether a queue has never kept a history.
async fn is_unset(session: &Session<'_>, queue: &QueueName) -> Result<bool, Failure> {
    let found = session.inspector().history_details(queue).await?;
    Ok(found.options.is_none() && found.days.is_empty())
}

/// A day in the list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct DayRow(HistoryDay);

impl Row for DayRow {
    const COLUMNS: &'static [Column] =
        &[Column::text("DAY"), Column::number("SUCCESS SIZE"), Column::number("DEATH SIZE")];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let HistoryDay { day, success_bytes, dead_bytes, .. } = self.0;
        vec![
            Cell::new(day.to_string()),
            Cell::new(text::size(success_bytes)),
            Cell::new(text::size(dead_bytes)),
        ]
    }
}

async fn show(session: &Session<'_>, queue: &QueueName) -> Result<Exit, Failure> {
    let details = session.inspector().history_details(queue).await?;
    session.known_if_empty(&details.days, slice::from_ref(queue)).await?;
    if session.out.is_json() {
        session.out.fields(&json!({ "queue": queue, "history": details }), &[])?;
        return Ok(Exit::Done);
    }
    let HistoryDetails { options, days, bytes, .. } = details;
    let fields = [
        ("queue", Some(queue.to_string())),
        ("keeps", Some(options.as_ref().map_or_else(|| "no history".to_owned(), kept))),
        ("has", Some(text::size(bytes))),
    ];
    session.out.fields(&json!({}), &fields)?;
    let rows: Vec<DayRow> = days.into_iter().map(DayRow).collect();
    let none = format!(
        "No line is kept yet. Without one, {} shows the last successes.",
        advice("history list", [queue])
    );
    session.out.rows(&rows, session.now().await?, &none)?;
    Ok(Exit::Done)
}

/// Says what is kept.
fn kept(options: &HistoryOptions) -> String {
    let days = text::count(options.kept_days(), "day");
    if options.kept_tasks().is_some_and(<[String]>::is_empty) {
        return format!("no more lines; those that it has stay for {days}");
    }
    let tasks = match options.kept_tasks() {
        None => "of all tasks".to_owned(),
        Some(tasks) => format!("of {}", tasks.join(", ")),
    };
    format!("{days} {tasks}, up to {}", text::size(options.kept_bytes()))
}
