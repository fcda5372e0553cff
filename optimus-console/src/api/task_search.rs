//! Looks through the tasks of a state for those that somebody wants: [`scan`].

use optimus_core::{Inspector, PAGE_MAX, PageCursor, QueueName, TaskState};

use super::page::Page;
use crate::{
    access::Reader,
    problem::Problem,
    view::{TaskRowView, at_ms},
};

/// How many pages of tasks one request looks at: so many that it takes Redis less than 1 ms,
/// unless many cancelled tasks are in the ready list. A browser asks again while it wants more.
const PAGES_MAX: usize = 2;

/// Which tasks are wanted.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) task: Option<String>,
    pub(super) header: Option<String>,
    pub(super) older_ms: Option<u64>,
    pub(super) fingerprint: Option<String>,
    /// In lower case.
    pub(super) text: Option<String>,
}

impl Filter {
    pub(super) fn is_all(&self) -> bool {
        let Self { task, header, older_ms, fingerprint, text } = self;
        let texts = [task, header, fingerprint, text];
        texts.iter().all(|text| text.is_none()) && older_ms.is_none()
    }

    /// Returns whether a task is wanted, at this time of Redis. The text is looked for in what is
    /// shown, so that nobody can guess what is hidden.
    fn takes(&self, row: &TaskRowView, now_ms: u64) -> bool {
        let is_ended = matches!(row.state, "success" | "dead" | "cancelled");
        let since = if is_ended { row.at_ms } else { row.created_ms };
        let is_old = |older: u64| since.is_some_and(|since| now_ms.saturating_sub(since) >= older);
        let print = row.error.as_ref().and_then(|error| error.fingerprint.as_ref());
        self.task.as_ref().is_none_or(|task| row.task.as_ref() == Some(task))
            && self.older_ms.is_none_or(is_old)
            && self.fingerprint.as_ref().is_none_or(|wanted| print == Some(wanted))
            && self.header.as_ref().is_none_or(|wanted| has_header(row, wanted))
            && self.text.as_ref().is_none_or(|text| has_text(row, text))
    }
}

fn has_header(row: &TaskRowView, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((name, value)) => row.headers.get(name).is_some_and(|header| header == value),
        None => row.headers.contains_key(wanted),
    }
}

fn has_text(row: &TaskRowView, text: &str) -> bool {
    let has = |shown: &str| shown.to_lowercase().contains(text);
    let errors = row.error.as_ref().is_some_and(|error| {
        has(error.reason) || has(&error.message) || error.causes.iter().any(|cause| has(cause))
    });
    errors
        || has(&row.id)
        || row.task.as_deref().is_some_and(has)
        || row.worker.as_deref().is_some_and(has)
        || row.headers.iter().any(|(name, value)| has(name) || has(value))
}

/// Reads tasks in steps, until there are enough that are wanted, or enough were looked at.
pub(super) async fn scan(
    inspector: &Inspector,
    (queue, state): (&QueueName, TaskState),
    filter: &Filter,
    (mut after, limit): (Option<PageCursor>, usize),
    reader: Reader<'_>,
) -> Result<Page<TaskRowView>, Problem> {
    let now_ms = at_ms(inspector.now().await?);
    let (mut rows, mut scanned) = (Vec::new(), 0);
    for _ in 0..PAGES_MAX {
        let page = inspector.list(queue, state, after.as_ref(), PAGE_MAX).await?;
        scanned += page.rows.len() as u64;
        let seen = page.rows.iter().map(|row| TaskRowView::of(row, reader));
        rows.extend(seen.filter(|row| filter.takes(row, now_ms)));
        after = page.next;
        if after.is_none() || rows.len() >= limit {
            break;
        }
    }
    let next = after.map(|after| after.to_string());
    Ok(Page { scanned: Some(scanned), ..Page::new(rows, next) })
}
