//! Which tasks of a list are meant: [`Filter`], and lists read page by page.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, builder::NonEmptyStringValueParser};
use optimus_core::{
    Error, Fingerprint, Inspector, OperationFilter, PAGE_MAX, PageCursor, QueueName, Reason,
    TaskRow, TaskState,
};

use crate::{failure::Failure, found::Found, parse, session::Session, unread::Unread};

/// How many tasks one command finds: their ids are kept in memory.
pub(crate) const MATCHES_MAX: usize = 100_000;
/// How many tasks of a state are looked at.
const SCANNED_MAX: u64 = 1_000_000;

/// Which tasks are meant. Without an option, all.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Filter {
    /// Tasks of this name.
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Tasks that ended at least this long ago, such as `2h`; those that have not ended: that were
    /// submitted so long ago.
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    older: Option<Duration>,
    /// Tasks whose last error has this text in its first 200 characters.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    error: Option<String>,
    /// Tasks whose last attempt ended so: `failed`, `timed_out`, `panicked`, `lost` or another
    /// reason.
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    cause: Option<Reason>,
    /// Tasks whose last error has this fingerprint, as `dead fingerprints` prints it.
    #[arg(long, value_name = "FINGERPRINT", allow_hyphen_values = true)]
    fingerprint: Option<Fingerprint>,
    /// Tasks with this header: `tenant=acme`, or `tenant` for any value; may be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse::header)]
    headers: Vec<(String, Option<String>)>,
}

/// What a list without a row says.
pub(crate) struct Nothing {
    /// Without a filter.
    pub(crate) of_all: &'static str,
    /// With a filter: other tasks may be there.
    pub(crate) of_filter: &'static str,
}

/// Reads the word of a reason.
fn cause(word: &str) -> Result<Reason, String> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|_| {
        format!(
            "{word:?} is not the cause of an end; write failed, timed_out, panicked, lost, \
             undecodable, unknown, expired, result_too_large, unreported or unmet"
        )
    })
}

impl Filter {
    /// Returns whether all tasks are meant.
    pub(crate) fn is_all(&self) -> bool {
        let Self { task, older, error, cause, fingerprint, headers } = self;
        let texts = task.is_none() && error.is_none() && headers.is_empty();
        texts && older.is_none() && cause.is_none() && fingerprint.is_none()
    }

    /// Returns what a list of no row says.
    pub(crate) fn nothing(&self, nothing: &Nothing) -> &'static str {
        if self.is_all() { nothing.of_all } else { nothing.of_filter }
    }

    /// Returns the filter of these queues (all, if there is none) and states.
    pub(crate) fn of(
        &self,
        queues: &[QueueName],
        states: &[TaskState],
    ) -> Result<OperationFilter, Failure> {
        let mut filter = OperationFilter::of(states.first().copied().unwrap_or(TaskState::Dead));
        for state in states {
            filter = filter.or(*state);
        }
        for queue in queues {
            filter = filter.queue(queue)?;
        }
        for (name, value) in &self.headers {
            filter = filter.header(name, value.clone());
        }
        let filter = match &self.task {
            Some(task) => filter.task(task),
            None => filter,
        };
        let filter = match self.older {
            Some(age) => filter.older(age),
            None => filter,
        };
        let filter = match &self.error {
            Some(text) => filter.text(text),
            None => filter,
        };
        let filter = match self.cause {
            Some(cause) => filter.cause(cause),
            None => filter,
        };
        Ok(match self.fingerprint {
            Some(fingerprint) => filter.fingerprint(fingerprint),
            None => filter,
        })
    }

    /// Returns a function that says whether a task is meant, at that time of Redis.
    pub(crate) fn takes(&self, now: DateTime<Utc>) -> Result<impl Fn(&TaskRow) -> bool, Failure> {
        let filter = self.of(&[], &[])?;
        Ok(move |row: &TaskRow| filter.takes(row, now))
    }
}

/// Reads the tasks of these queues in a state that the filter takes, at most [`MATCHES_MAX`]. Warns
/// of a queue that Redis refuses to read, and leaves it out.
pub(crate) async fn find(
    session: &Session<'_>,
    queues: &[QueueName],
    states: &[TaskState],
    filter: &Filter,
) -> Result<Found, Failure> {
    let (now, mut found) = (session.now().await?, Found::default());
    let (takes, inspector) = (filter.takes(now)?, session.inspector());
    let mut unread = Unread::default();
    for queue in queues {
        for state in states {
            // What has ended since is not meant.
            let is_new = |row: &TaskRow| state.is_terminal() && row.at > Some(now);
            let is_meant = |row: &TaskRow| !is_new(row) && takes(row);
            let reading = find_in(&inspector, (queue, *state), is_meant, &mut found);
            if unread.sort(queue, reading.await)?.is_none() || !found.is_whole {
                break;
            }
        }
        if !found.is_whole {
            break;
        }
    }
    session.leave_out(&unread)?;
    Ok(found)
}

/// Reads the tasks of a queue in a state that are meant.
async fn find_in(
    inspector: &Inspector,
    (queue, state): (&QueueName, TaskState),
    is_meant: impl Fn(&TaskRow) -> bool,
    found: &mut Found,
) -> Result<(), Error> {
    let mut after: Option<PageCursor> = None;
    loop {
        let page = inspector.list(queue, state, after.as_ref(), PAGE_MAX).await?;
        for row in page.rows {
            found.scanned += 1;
            if is_meant(&row) {
                found.add(&row);
            }
        }
        after = page.next;
        if found.is_full() || found.scanned >= SCANNED_MAX {
            found.is_whole = false;
            return Ok(());
        }
        if after.is_none() {
            return Ok(());
        }
    }
}
