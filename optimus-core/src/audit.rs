//! What operators have done, for those who ask later: [`AuditRow`], [`AuditNote`].

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    broker::Broker,
    client::Client,
    inspect::Inspector,
    platform::{self, instant},
    task_page::PAGE_MAX,
};

/// How many characters of each text are kept. A target may be the ids of 100 tasks, in a queue with
/// the longest name.
const NAME_CHARS: usize = 200;
const TARGET_CHARS: usize = 100 * 166;
const TEXT_CHARS: usize = 1_000;
/// The digits of an id.
const ID_DIGITS: usize = 32;
/// How often a page reads on, if many acts have the same ms.
const READS_MAX: usize = 16;

/// What somebody is about to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditAct {
    /// Who, by the name under which the console knows them; may be empty.
    pub who: String,
    /// What: `queue.pause`, `task.retry` or another verb.
    pub act: String,
    /// To what: a queue, the ids of tasks, a process.
    pub target: String,
    /// Why, as they have said; may be empty.
    pub reason: String,
}

/// An act, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditRow {
    /// The id of the act.
    pub id: String,
    /// When it was written down, which is before it was done, by Redis' clock.
    pub at: DateTime<Utc>,
    /// The act.
    pub act: AuditAct,
    /// What became of it; `None` if this is not known: it was not done yet, or the program that did
    /// it has ended before it could tell.
    pub outcome: Option<String>,
}

/// Some of the acts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditPage {
    /// The acts, the latest first.
    pub rows: Vec<AuditRow>,
    /// The start of the next page; `None` after the last.
    pub next: Option<AuditCursor>,
}

/// The place of a page of acts. Its text needs no escape in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCursor {
    at_ms: u64,
    id: String,
}

/// An act that was written down. Say what became of it with [`outcome`](Self::outcome).
#[must_use = "what became of the act is not known until it is said"]
pub struct AuditNote {
    broker: Broker,
    at_ms: u64,
    id: String,
}

impl fmt::Debug for AuditNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditNote").field("id", &self.id).finish_non_exhaustive()
    }
}

impl AuditNote {
    /// Says what became of the act.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn outcome(&self, text: &str) -> Result<(), Error> {
        let text = serde_json::to_string(&cut(text, TEXT_CHARS)).unwrap_or_default();
        let line = format!("{} o{text}", self.id);
        Ok(self.broker.audit(&Broker::audit_slot(), self.at_ms, &line).await?)
    }
}

impl Client {
    /// Writes down what somebody is about to do, before it is done. The last 10,000 acts are kept,
    /// for 180 days. A Redis that is full takes the line, too. If this fails, do not act.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::AuditAct;
    ///
    /// let act = AuditAct {
    ///     who: "ann".into(),
    ///     act: "queue.pause".into(),
    ///     target: "mail".into(),
    ///     reason: "a deploy".into(),
    /// };
    /// let note = client.audit(act).await?;
    /// client.pause("mail").await?;
    /// note.outcome("paused").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`], and other errors of Redis.
    pub async fn audit(&self, act: AuditAct) -> Result<AuditNote, Error> {
        let broker = self.broker().clone();
        let at_ms = broker.now_ms().await?;
        let id = platform::new_uuid().simple().to_string();
        let act = AuditAct {
            who: cut(&act.who, NAME_CHARS),
            act: cut(&act.act, NAME_CHARS),
            target: cut(&act.target, TARGET_CHARS),
            reason: cut(&act.reason, TEXT_CHARS),
        };
        let json = serde_json::to_string(&act).map_err(|why| Error::invalid(why.to_string()))?;
        broker.audit(&Broker::audit_slot(), at_ms, &format!("{id} i{json}")).await?;
        Ok(AuditNote { broker, at_ms, id })
    }
}

impl Inspector {
    /// Reads what operators have done, the latest first: at most `limit` (and [`PAGE_MAX`]) acts,
    /// starting at `after`, which the page before has returned.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `limit` is 0.
    pub async fn audit(
        &self,
        after: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        if limit == 0 {
            return Err(Error::invalid("the limit of a page is 0; ask for 1 row or more"));
        }
        let limit = limit.min(PAGE_MAX);
        let (mut page, mut outcome, mut skip) = (AuditPage::default(), None, 0);
        // An act has two lines.
        let count = 2 * limit + 2;
        for _ in 0..READS_MAX {
            let lines = self.broker.audit_read(after.map(|after| after.at_ms), skip, count).await?;
            let is_last = lines.len() < count;
            skip += lines.len();
            for (at_ms, line) in lines {
                match read(&line) {
                    Some((id, _)) if after.is_some_and(|after| after.is_at(at_ms, id)) => {}
                    Some((id, Part::Outcome(text))) => outcome = Some((id.to_owned(), text)),
                    Some((id, Part::Intent(act))) => {
                        if page.rows.len() == limit {
                            page.next = page.rows.last().map(AuditCursor::after);
                            return Ok(page);
                        }
                        let told = outcome.take().filter(|(of, _)| of == id);
                        let (id, at) = (id.to_owned(), instant(at_ms));
                        page.rows.push(AuditRow {
                            id,
                            at,
                            act,
                            outcome: told.map(|(_, text)| text),
                        });
                    }
                    None => {}
                }
            }
            if is_last {
                return Ok(page);
            }
        }
        page.next = page.rows.last().map(AuditCursor::after);
        Ok(page)
    }
}

/// A part of a stored act.
enum Part {
    Intent(AuditAct),
    Outcome(String),
}

/// Reads a stored line; `None` if another program has written something else.
fn read(line: &str) -> Option<(&str, Part)> {
    let (id, rest) = line.split_once(' ').filter(|(id, _)| is_id(id))?;
    let part = match rest.split_at_checked(1)? {
        ("i", json) => Part::Intent(serde_json::from_str(json).ok()?),
        ("o", json) => Part::Outcome(serde_json::from_str(json).ok()?),
        _ => return None,
    };
    Some((id, part))
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the first characters of a text, and a sign that it was longer.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

impl AuditCursor {
    fn after(row: &AuditRow) -> Self {
        let at_ms = u64::try_from(row.at.timestamp_millis()).unwrap_or(0);
        Self { at_ms, id: row.id.clone() }
    }

    /// Returns whether a line was on the pages before.
    fn is_at(&self, at_ms: u64, id: &str) -> bool {
        at_ms == self.at_ms && id >= self.id.as_str()
    }
}

impl fmt::Display for AuditCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at_ms, self.id)
    }
}

impl FromStr for AuditCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.split_once('-').filter(|(_, id)| is_id(id));
        let read = parts.and_then(|(ms, id)| Some((ms.parse().ok()?, id)));
        let (at_ms, id) = read.ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the cursor of a page; use the `next` of the page before as it is, \
                 or none for the first page"
            ))
        })?;
        Ok(Self { at_ms, id: id.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_says_so() {
        assert_eq!([cut("", 3), cut("äöü", 3), cut("äöüx", 3)], ["", "äöü", "äö…"]);
    }
}
