//! The groups of a queue, one page at a time: [`GroupPage`], [`GroupCursor`].

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    group_details::GroupDetails,
    id::{QueueName, TaskId},
    inspect::Inspector,
    platform::instant,
    task_page::PAGE_MAX,
};

/// Some of the groups of a queue.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupPage {
    /// The groups, in the order in which they are removed.
    pub rows: Vec<GroupDetails>,
    /// The start of the next page; `None` after the last.
    pub next: Option<GroupCursor>,
}

/// A position between two groups of a list, which stays valid while groups come and go. Its text
/// has only letters, digits and `-._~`, so it can be part of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupCursor {
    /// The last group that was read.
    pub(crate) id: TaskId,
    /// When it was to be removed, in ms.
    pub(crate) until_ms: u64,
}

impl Inspector {
    /// Reads the groups whose home is this queue, open ones and ended ones: at most `limit` (and
    /// [`PAGE_MAX`]), starting at `after`, which the page before has returned. The home of a group
    /// is the queue of [its id](crate::GroupHandle::id): that of its callback, or of its first
    /// member.
    ///
    /// A group that changes while pages are read may be on two of them. [`explain`](Self::explain)
    /// of an id names a member that has failed.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{Error, Inspector};
    ///
    /// async fn print_open(inspector: &Inspector, queue: &str) -> Result<(), Error> {
    ///     let mut after = None;
    ///     loop {
    ///         let page = inspector.groups(queue, after.as_ref(), 100).await?;
    ///         for group in page.rows.iter().filter(|group| group.progress.ended.is_none()) {
    ///             println!("{}, made {:?}: {}", group.id, group.created, group.progress);
    ///         }
    ///         after = page.next;
    ///         if after.is_none() {
    ///             return Ok(());
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `after` is of another queue, or if
    /// `limit` is 0.
    pub async fn groups(
        &self,
        queue: impl AsRef<str>,
        after: Option<&GroupCursor>,
        limit: usize,
    ) -> Result<GroupPage, Error> {
        let queue = &QueueName::new(queue)?;
        if limit == 0 {
            return Err(Error::invalid("the limit of a page is 0; ask for 1 group or more"));
        }
        if let Some(other) = after.filter(|after| after.id.queue() != queue) {
            return Err(Error::invalid(format!(
                "the cursor {other} is a place in the groups of queue {}, not of queue {queue}; \
                 begin that list without a cursor",
                other.id.queue()
            )));
        }
        let limit = limit.min(PAGE_MAX);
        let after = after.map(|after| (&after.id, after.until_ms));
        let found = self.broker.group_ids(queue, limit, after).await?;
        let last = found.last().filter(|_| found.len() == limit);
        let next = last.map(|(id, until_ms)| GroupCursor { id: id.clone(), until_ms: *until_ms });
        let reads = found.iter().map(|(id, _)| self.broker.group(id));
        let progress = futures_util::future::try_join_all(reads).await?;
        let rows = found.into_iter().zip(progress).filter_map(|((id, until_ms), progress)| {
            let (created, kept_until) = (id.created(), instant(until_ms));
            Some(GroupDetails { created, kept_until, progress: progress?, id })
        });
        Ok(GroupPage { rows: rows.collect(), next })
    }
}

impl fmt::Display for GroupCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}~{}", self.id.queue(), self.until_ms, self.id.stored())
    }
}

impl FromStr for GroupCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || {
            let (queue, rest) = text.split_once('~')?;
            let (until_ms, id) = rest.split_once('~')?;
            let id = TaskId::from_stored(QueueName::new(queue).ok()?, id).ok()?;
            Some(Self { id, until_ms: until_ms.parse().ok()? })
        };
        read().ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the cursor of a page of groups; use the `next` of the page before \
                 as it is, or none for the first page"
            ))
        })
    }
}

impl TryFrom<String> for GroupCursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<GroupCursor> for String {
    fn from(cursor: GroupCursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_from_its_text_and_other_texts_are_refused() {
        let id = TaskId::new(QueueName::new("mail.v2").unwrap());
        let cursor = GroupCursor { id, until_ms: 1_795_345_000_123 };
        let text = cursor.to_string();
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c)), "{text}");
        assert_eq!(text.parse::<GroupCursor>().unwrap(), cursor);
        let json = serde_json::to_string(&cursor).unwrap();
        assert_eq!(serde_json::from_str::<GroupCursor>(&json).unwrap(), cursor);
        for text in
            ["", "mail", "mail~5", "mail~5~short", "mail~x~0000000000000000000000", "a b~5~0"]
        {
            let problem = text.parse::<GroupCursor>().unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(text), "{problem}");
        }
    }
}
