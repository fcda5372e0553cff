//! A position between two tasks of a list: [`PageCursor`].

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, id::QueueName, state::TaskState};

/// Separates the parts of a cursor's text, and comes before the code of an escaped byte. Names of
/// queues do not have this character, and a URL needs no escape for it.
const MARK: char = '~';

/// A position between two tasks of one list, which stays valid while tasks come and go.
///
/// Its text ([`Display`](fmt::Display), [`FromStr`], serde) has only letters, digits and `-._~`, so
/// it can be part of a URL. A text that is not a cursor is refused when it is parsed. A cursor of
/// another queue or state is refused by [`Inspector::list`](crate::Inspector::list).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageCursor {
    queue: QueueName,
    state: TaskState,
    /// The form that the script `list` reads.
    place: String,
}

impl PageCursor {
    /// Returns the cursor that the script returned; `None` after the last page.
    pub(crate) fn of(queue: &QueueName, state: TaskState, place: String) -> Option<Self> {
        (!place.is_empty()).then(|| Self { queue: queue.clone(), state, place })
    }

    /// Returns the place for the script, if the cursor is of that list.
    pub(crate) fn place_in(&self, queue: &QueueName, state: TaskState) -> Result<&str, Error> {
        if (&self.queue, self.state) == (queue, state) {
            return Ok(&self.place);
        }
        Err(Error::invalid(format!(
            "the cursor {self} is a place in the {} tasks of queue {}, not in the {state} tasks of \
             queue {queue}; begin that list without a cursor",
            self.state, self.queue
        )))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, MARK);
        let mut part = || parts.next();
        let (queue, state) = (QueueName::new(part()?).ok()?, TaskState::from_word(part()?)?);
        let place = unescape(part()?)?;
        is_place(state, &place).then_some(Self { queue, state, place })
    }
}

/// Returns whether the script can read the place: an index or a score (for a worker's tasks, the
/// worker), and an entry.
fn is_place(state: TaskState, place: &str) -> bool {
    let Some((at, entry)) = place.split_once(' ') else { return false };
    let is_at = match state {
        TaskState::Forgotten => false,
        TaskState::Working => !at.is_empty(),
        TaskState::Success => is_index(at),
        // Ranked tasks, which have a score, come before the list.
        TaskState::Ready => at.strip_prefix('p').map_or_else(|| is_index(at), is_score),
        // Tasks that wait for a limit or a run have a score, and those that wait for others a scan.
        TaskState::Blocked => match at.strip_prefix('u') {
            Some(scan) => {
                let (scan, run) = scan.split_once('.').unwrap_or((scan, ""));
                scan.parse::<u64>().is_ok() && run.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            None => is_score(at.strip_prefix(['g', 'r']).unwrap_or(at)),
        },
        _ => is_score(at),
    };
    is_at && !entry.is_empty()
}

/// Returns whether the text is a position in a list, which Redis accepts only as an integer.
fn is_index(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn is_score(text: &str) -> bool {
    text.parse().is_ok_and(f64::is_finite)
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split(MARK);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{MARK}{}{MARK}", self.queue, self.state)?;
        for byte in self.place.bytes() {
            match byte {
                b'-' | b'.' | b'_' => write!(f, "{}", char::from(byte))?,
                _ if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "{MARK}{byte:02x}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for PageCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the cursor of a page; use the `next` of the page before as it \
                 is, or none for the first page"
            ))
        })
    }
}

impl TryFrom<String> for PageCursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<PageCursor> for String {
    fn from(cursor: PageCursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_from_its_text_which_a_url_takes_as_it_is() {
        let queue = QueueName::new("mail.v2").unwrap();
        for (state, place) in [
            (TaskState::Dead, "1795345000123 01a20272-b280-70fa"),
            (TaskState::Ready, "p-1.5e+20 01a20272"),
            (TaskState::Ready, "17 01a20272 3"),
            (TaskState::Blocked, "17 01a20272 user-7"),
            (TaskState::Blocked, "g17 01a20272 limit:a"),
            (TaskState::Blocked, "r17 01a20272 job:a"),
            (TaskState::Blocked, "u17 5:01a20272"),
            (TaskState::Blocked, "u17 -"),
            (TaskState::Blocked, "u17.0a1b2c3d 5:01a20272"),
            (TaskState::Working, "vm-1-0a0b 01a20272"),
            (TaskState::Success, "999 01a20272 5 mail~é 1 7 vm-1-0a0b"),
        ] {
            let cursor = PageCursor::of(&queue, state, place.to_owned()).unwrap();
            let text = cursor.to_string();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            assert!(text.chars().all(is_plain), "{text}");
            assert_eq!(text.parse::<PageCursor>().unwrap(), cursor, "{text}");
            let json = serde_json::to_string(&cursor).unwrap();
            assert_eq!(serde_json::from_str::<PageCursor>(&json).unwrap(), cursor);
            assert_eq!(cursor.place_in(&queue, state).unwrap(), place);
        }
    }

    #[test]
    fn a_text_that_is_no_cursor_is_refused() {
        for text in [
            "",
            " ",
            "2",
            "5 gone",
            "mail",
            "mail~dead",
            "mail~dead~",
            "mail~dead~5",
            "mail~dead~5~20",
            "mail~dead~x~20gone",
            "mail~dead~nan~20gone",
            " mail~dead~5~20gone",
            "mail~dead~5~2",
            "mail~dead~5~zzgone",
            "mail~dead~5~20~ff",
            "mail~gone~5~20gone",
            "mail~forgotten~5~20gone",
            "mail~working~~20gone",
            "mail~ready~1.5~20gone",
            "mail~ready~1e300~20gone",
            "mail~ready~-1~20gone",
            "mail~ready~pp5~20gone",
            "mail~success~1e300~20gone",
            "mail~success~p5~20gone",
            "mail~cancelled~p5~20gone",
            "mail~blocked~u17.x~20gone",
        ] {
            let problem = text.parse::<PageCursor>().unwrap_err();
            assert!(problem.is_invalid(), "{problem}");
            assert!(problem.to_string().contains(&format!("{text:?}")), "{problem}");
            assert!(serde_json::from_str::<PageCursor>(&format!("{text:?}")).is_err());
        }
        assert!("mail~dead~5~20gone".parse::<PageCursor>().is_ok());
    }
}
