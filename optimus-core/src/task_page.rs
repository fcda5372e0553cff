//! Tasks in a state, one page at a time: [`TaskPage`].

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    broker::{BATCH_MAX, Listed, Row},
    id::{QueueName, TaskId, WorkerId},
    inspect::read_error,
    page_cursor::PageCursor,
    platform::instant,
    record::TaskRecord,
    state::{AttemptError, TaskState},
};

/// The maximum number of rows of a page.
pub const PAGE_MAX: usize = BATCH_MAX;

/// The maximum number of characters of an error's message in a row.
const MESSAGE_CHARS: usize = 200;

/// Some of the tasks in a state.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TaskPage {
    /// The rows, in the order in which the tasks leave the state; for ended tasks, the latest
    /// first.
    pub rows: Vec<TaskRow>,
    /// The start of the next page; `None` after the last. After a full page, the next page may be
    /// empty.
    pub next: Option<PageCursor>,
}

/// A summary of one task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskRow {
    /// The id of the task.
    pub id: TaskId,
    /// The task's name; `None` if its record can't be read.
    pub task: Option<String>,
    /// The headers of its submit, by name; empty if its record can't be read or is gone.
    pub headers: BTreeMap<String, String>,
    /// The state of the task.
    pub state: TaskState,
    /// When the id was made, by the submitter's clock. This is the time of the submit, unless the
    /// id was given. If the id has no time: when Redis accepted the task, or `None` if its record
    /// does not say so.
    pub created: Option<DateTime<Utc>>,
    /// When the task is due (delayed, retry) or ended, by Redis' clock. Of a ready task without a
    /// priority that was delayed, blocked or tried before: since when it is ready.
    pub at: Option<DateTime<Utc>>,
    /// The number of the running attempt or the last one, from 1; 0 before the first.
    pub attempt: u32,
    /// How often the task was given back, because no worker could run it, since its last attempt.
    pub misfits: u32,
    /// How long the successful attempt took.
    pub took: Option<Duration>,
    /// The worker that runs it, or on which it succeeded.
    pub worker: Option<WorkerId>,
    /// The last error of the task, with up to 200 characters of the message.
    /// [`TaskDetails::errors`](crate::TaskDetails::errors) has the whole message.
    pub last_error: Option<AttemptError>,
}

impl TaskPage {
    pub(crate) fn of(queue: &QueueName, state: TaskState, listed: Listed) -> Self {
        let rows = listed.rows.into_iter().map(|row| TaskRow::of(state, row)).collect();
        Self { rows, next: PageCursor::of(queue, state, listed.next) }
    }
}

impl TaskRow {
    pub(crate) fn of(state: TaskState, row: Row) -> Self {
        let Row { id, worker, at_ms, mut header, tries, error, summary } = row;
        header.push(b'\n');
        let runs = u32::from(state == TaskState::Working);
        let mut last_error = read_error(&error);
        if let Some(error) = &mut last_error {
            error.message = error.message.chars().take(MESSAGE_CHARS).collect();
        }
        let record = TaskRecord::decode(header).ok();
        let accepted = record.as_ref().and_then(|record| record.accepted_ms).map(instant);
        let (task, headers) = record.map(|record| (record.task, record.headers)).unzip();
        let mut view = Self {
            created: id.created().or(accepted),
            id,
            task,
            headers: headers.unwrap_or_default(),
            state,
            at: at_ms.map(instant),
            attempt: tries.0 + tries.1 + runs,
            misfits: tries.2,
            took: None,
            worker,
            last_error,
        };
        if state == TaskState::Success {
            view.read_summary(&summary);
        }
        view
    }

    /// Reads a summary, `<id> <ms> <task> <attempt> <ms> <worker>`.
    fn read_summary(&mut self, summary: &str) {
        let mut words = summary.splitn(6, ' ').skip(2);
        self.task = words.next().map(str::to_owned);
        self.attempt = words.next().and_then(|attempt| attempt.parse().ok()).unwrap_or_default();
        self.took = words.next().and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        self.worker = words.next().map(WorkerId::from_stored);
    }
}
