//! A row that a source has found, and its task: [`Found`].

use std::fmt;

use serde::Serialize;

use crate::{
    Error,
    call::Call,
    call_submit::Submit as _,
    page::{PageFacts, Stamp},
    parameter::Arguments,
    source_row::{SOURCE_HEADER, row_header},
    submission::Submission,
    task::Task,
};

/// The most bytes of a row's key, as JSON.
pub const KEY_BYTES_MAX: usize = 200;
/// How much longer a task may take whose source stores failures, so that a failure can be stored
/// after the time of the handler.
pub const NOTE_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Makes the task of a row, once its source and key are known.
type MakeTask = Box<dyn FnOnce(&Stamp, &RowName) -> Result<Submission, Error> + Send>;

/// A row that a source has read: its key, how often it has failed, and the task for it.
///
/// Return every row that the query returned, in its order, also rows that need no task: the next
/// page begins after the last one.
pub struct Found<K> {
    key: K,
    failures: u32,
    make: Option<MakeTask>,
}

impl<K: fmt::Debug> fmt::Debug for Found<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("key", &self.key)
            .field("failures", &self.failures)
            .field("has_task", &self.make.is_some())
            .finish()
    }
}

/// A row without the type of its key.
#[doc(hidden)]
#[derive(Debug)]
pub struct FoundRow {
    /// The key as JSON.
    pub key: String,
    pub task: RowTask,
}

/// The task of a row.
#[doc(hidden)]
#[derive(Debug)]
pub enum RowTask {
    /// It needs none.
    None,
    /// Its number of failures belongs to another page.
    OtherTier,
    /// It has failed too often.
    GivenUp,
    /// It can't be submitted.
    Refused(Error),
    Submit(Box<Submission>),
}

/// By what a row is known: its biz id and its header.
struct RowName {
    biz_id: String,
    header: String,
}

impl<K> Found<K> {
    /// Names a row by its key.
    pub fn new(key: K) -> Self {
        Self { key, failures: 0, make: None }
    }

    /// Says how often the row has failed, as its table has stored it.
    pub fn failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets the task of the row. Without a biz id of its own, the call has one of the source and
    /// the key, so a row whose task has not ended gets no second one.
    pub fn task<T: Task>(mut self, call: Call<T>) -> Self {
        self.make = Some(Box::new(move |stamp, name| submission(call, stamp, name)));
        self
    }

    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns whether the row has a task.
    pub fn has_task(&self) -> bool {
        self.make.is_some()
    }
}

/// Returns the rows of a page without their types. This runs user code, which encodes arguments.
///
/// # Errors
/// [`Error::is_invalid`] for too many rows, a key that is no short JSON, and a page that does not
/// go on.
#[doc(hidden)]
pub fn found_rows<K: Serialize>(
    found: Vec<Found<K>>,
    facts: &PageFacts,
) -> Result<Vec<FoundRow>, Error> {
    let source = facts.stamp.source;
    let refuse = |what: String| Err(Error::invalid(format!("source {source:?}: {what}")));
    if found.len() > usize::try_from(facts.limit).unwrap_or(usize::MAX) {
        return refuse(format!(
            "it returned {} rows; read at most `page.limit()` of them, which is {}",
            found.len(),
            facts.limit
        ));
    }
    let mut rows = Vec::with_capacity(found.len());
    for Found { key, failures, make } in found {
        let key = serde_json::to_string(&key)
            .map_err(|problem| Error::invalid(format!("source {source:?}: a key: {problem}")))?;
        if key.len() > KEY_BYTES_MAX {
            return refuse(format!(
                "a key takes {} bytes as JSON; the limit is {KEY_BYTES_MAX}; use the primary key",
                key.len()
            ));
        }
        let (stamp, tier) = (&facts.stamp, facts.tier);
        let task = match make {
            None => RowTask::None,
            Some(_) if stamp.attempts.is_some_and(|most| failures >= most) => RowTask::GivenUp,
            Some(_) if !(tier.least..=tier.most).contains(&failures) => RowTask::OtherTier,
            Some(make) => match make(stamp, &name(facts, &key, failures)) {
                Ok(submission) => RowTask::Submit(Box::new(submission)),
                Err(problem) => RowTask::Refused(problem),
            },
        };
        rows.push(FoundRow { key, task });
    }
    if rows.last().is_some_and(|row| facts.after.as_ref() == Some(&row.key)) {
        return refuse(
            "the page ends where the page before ended: read only rows whose key is above \
             `page.after()`, in the order of the key"
                .to_owned(),
        );
    }
    Ok(rows)
}

fn name(facts: &PageFacts, key: &str, failures: u32) -> RowName {
    let text = serde_json::from_str::<String>(key).unwrap_or_else(|_| key.to_owned());
    let table = facts.table.as_deref();
    let biz_id = [Some(facts.stamp.source), table, Some(&text)].into_iter().flatten();
    RowName {
        biz_id: biz_id.collect::<Vec<_>>().join("/"),
        header: row_header(&facts.stamp, (table, key), failures),
    }
}

fn submission<T: Task>(
    mut call: Call<T>,
    stamp: &Stamp,
    name: &RowName,
) -> Result<Submission, Error> {
    let has_own = call.options().biz_id.is_some()
        || matches!(&call.arguments, Arguments::All(task) if T::biz_id(task).is_some());
    let all = call.over(&T::options());
    let options = call.set();
    if !has_own {
        options.biz_id = Some(name.biz_id.clone());
    }
    if all.biz_window.is_none() {
        options.biz_window = Some(stamp.remember);
    }
    if stamp.keeps_failures {
        options.max_retry = Some(0);
        options.timeout = Some(all.timeout + NOTE_WITHIN);
    }
    call.headers.insert(SOURCE_HEADER.0.to_owned(), stamp.source.to_owned());
    if stamp.has_hooks {
        call.headers.insert(SOURCE_HEADER.1.to_owned(), name.header.clone());
    }
    let submission = call.into_submission()?;
    if stamp.has_hooks && submission.gather.is_some() {
        return Err(Error::invalid(format!(
            "source {:?}: the calls of task {:?} run together, so `before` and `on_failure` can't \
             work for each row; submit another task, or leave these options out",
            stamp.source,
            T::NAME
        )));
    }
    Ok(submission)
}

#[cfg(test)]
#[path = "found_tests.rs"]
mod tests;
