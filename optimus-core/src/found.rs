//! A row that a source has found, and its task: [`Found`].

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error,
    call::Call,
    call_submit::Submit as _,
    guarded_drop::{discard, panic_text},
    page::{PageFacts, Stamp},
    page_order::disorder,
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

/// The rows of a page without the type of their keys.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct FoundPage {
    pub rows: Vec<FoundRow>,
    /// The last key that the next page can begin after, as JSON; `None` if there is none, so that
    /// the pass can't go on.
    pub last: Option<String>,
}

/// A row without the type of its key.
#[doc(hidden)]
#[derive(Debug)]
pub struct FoundRow {
    /// The key as JSON; empty if it has none.
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

/// Returns the rows of a page without their types. This runs user code, which encodes keys and
/// arguments. A row that can't be submitted is refused alone, because a row is data.
///
/// # Errors
/// [`Error::is_invalid`] for too many rows, a page that does not go on, and rows that are not in
/// the order of their keys.
#[doc(hidden)]
pub fn found_rows<K: Serialize + DeserializeOwned>(
    found: Vec<Found<K>>,
    facts: &PageFacts,
) -> Result<FoundPage, Error> {
    let refuse = |what: String| Err(refusal(facts, &what));
    if found.len() > usize::try_from(facts.limit).unwrap_or(usize::MAX) {
        return refuse(format!(
            "it returned {} rows; read at most `page.limit()` of them, which is {}",
            found.len(),
            facts.limit
        ));
    }
    let rows: Vec<FoundRow> = found.into_iter().map(|found| row(found, facts)).collect();
    let last = rows.iter().rev().find(|row| read_key::<K>(&row.key).is_ok());
    let last = last.map(|row| row.key.clone());
    if last.is_some() && last == facts.after {
        return refuse(
            "the page ends where the page before ended: read only rows whose key is above \
             `page.after()`, in the order of the key"
                .to_owned(),
        );
    }
    // A key of another type than before says nothing: the page is the first one of a pass.
    let after = facts.after.as_deref().filter(|_| facts.unread.get().is_none());
    if let Some(wrong) = disorder(rows.iter().map(|row| row.key.as_str()), after) {
        return refuse(format!(
            "the rows are not in the order of their keys, so the next page would miss some: \
             {wrong}; end the query with `ORDER BY` the key, from the smallest one"
        ));
    }
    Ok(FoundPage { rows, last })
}

/// Reads a key that was stored. The decoder is user code.
pub(crate) fn read_key<K: DeserializeOwned>(json: &str) -> Result<K, String> {
    let read = guarded(|| serde_json::from_str(json));
    read.and_then(|read| read.map_err(|problem| problem.to_string()))
}

fn row<K: Serialize>(found: Found<K>, facts: &PageFacts) -> FoundRow {
    let Found { key, failures, make } = found;
    let json = guarded(|| serde_json::to_string(&key));
    let json = json.and_then(|json| json.map_err(|problem| problem.to_string()));
    discard(key);
    let json = match json {
        Ok(json) => json,
        Err(problem) => {
            discard(make);
            let problem = refusal(facts, &format!("a key can't be written as JSON: {problem}"));
            return FoundRow { key: String::new(), task: RowTask::Refused(problem) };
        }
    };
    let task = make.map_or(RowTask::None, |make| task(make, facts, &json, failures));
    FoundRow { key: json, task }
}

fn task(make: MakeTask, facts: &PageFacts, key: &str, failures: u32) -> RowTask {
    let (stamp, tier) = (&facts.stamp, facts.tier);
    let without = if stamp.attempts.is_some_and(|most| failures >= most) {
        RowTask::GivenUp
    } else if !(tier.least..=tier.most).contains(&failures) {
        RowTask::OtherTier
    } else if key.len() > KEY_BYTES_MAX {
        RowTask::Refused(refusal(
            facts,
            &format!(
                "a key takes {} bytes as JSON; the limit is {KEY_BYTES_MAX}; use the primary key",
                key.len()
            ),
        ))
    } else {
        return match guarded(|| make(stamp, &name(facts, key, failures))) {
            Ok(Ok(submission)) => RowTask::Submit(Box::new(submission)),
            Ok(Err(problem)) => RowTask::Refused(problem),
            Err(panic) => RowTask::Refused(refusal(facts, &format!("the call of a row: {panic}"))),
        };
    };
    discard(make);
    without
}

fn refusal(facts: &PageFacts, what: &str) -> Error {
    Error::invalid(format!("source {:?}: {what}", facts.stamp.source))
}

/// Returns the result of user code, or the text of its panic.
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        let text = panic_text(&*panic);
        discard(panic);
        format!("it panicked: {text}")
    })
}

/// Joins source, table and key. The name of a source has no slash, and that of a table has none
/// here, so no two rows have the same biz id.
fn name(facts: &PageFacts, key: &str, failures: u32) -> RowName {
    let text = serde_json::from_str::<String>(key).unwrap_or_else(|_| key.to_owned());
    let table = facts.table.as_deref();
    let escaped = table.map(|table| table.replace('%', "%25").replace('/', "%2F"));
    let biz_id = [Some(facts.stamp.source), escaped.as_deref(), Some(&text)].into_iter().flatten();
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
        options.timeout = Some(all.timeout.saturating_add(NOTE_WITHIN));
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
