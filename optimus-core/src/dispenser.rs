//! The items of a dispenser, and what its verbs answer.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};

use crate::{Error, dispenser_error::DispenserError, options::PRIORITY_MAX};

/// The longest id of an item, in bytes.
pub const ITEM_BYTES_MAX: usize = 256;

/// The longest name of an assignee, in bytes.
pub const ASSIGNEE_BYTES_MAX: usize = 128;

/// How many items an assignee may hold, and how many rows a page of a peek may have.
pub const HELD_MAX: usize = 500;

/// An item of a dispenser: an id of your choice, such as that of a row in your database.
///
/// A dispenser stores only the id. What it stands for is in your database, where it does not become
/// out of date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub(crate) id: String,
    pub(crate) priority: i8,
    pub(crate) since: Option<DateTime<Utc>>,
}

impl Item {
    /// Makes an item that waits since it is added, with the priority 0.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), priority: 0, since: None }
    }

    /// Sets the priority, from -100 to 100. Each step counts as much as one minute of waiting, so
    /// an item that waits long overtakes those of a higher priority.
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets since when the item waits, such as the time at which its row was created. So a rebuild
    /// gives each item its place.
    pub fn waiting_since(mut self, since: DateTime<Utc>) -> Self {
        self.since = Some(since);
        self
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn check(&self) -> Result<(), DispenserError> {
        check_id(&self.id)?;
        if self.priority.unsigned_abs() > PRIORITY_MAX.unsigned_abs() {
            return Err(DispenserError::Priority { priority: self.priority });
        }
        Ok(())
    }
}

impl From<&str> for Item {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for Item {
    fn from(id: String) -> Self {
        Self::new(id)
    }
}

/// The digits are the id, as of a row in a database.
macro_rules! from_number {
    ($($number:ty)+) => {$(
        impl From<$number> for Item {
            fn from(id: $number) -> Self {
                Self::new(id.to_string())
            }
        }
    )+};
}

from_number! { i32 i64 u32 u64 }

impl From<&String> for Item {
    fn from(id: &String) -> Self {
        Self::new(id)
    }
}

/// Refuses an id that is empty or too long.
pub(crate) fn check_id(id: &str) -> Result<(), DispenserError> {
    match id.len() {
        1..=ITEM_BYTES_MAX => Ok(()),
        bytes => Err(DispenserError::ItemLength { bytes }),
    }
}

/// What an addition has done: how many of its items were new, and where the others were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Items that are new in the pool.
    pub added: u64,
    /// Items that were in the pool before. One of them moves forward if it is added with a higher
    /// priority.
    pub open: u64,
    /// Items that an assignee holds.
    pub assigned: u64,
    /// Items that were finished in the last hour. They do not come back.
    pub done: u64,
}

impl Added {
    /// Returns the sum of two additions.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            added: self.added + other.added,
            open: self.open + other.open,
            assigned: self.assigned + other.assigned,
            done: self.done + other.done,
        }
    }
}

/// What an assignee holds, by the order of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The items.
    pub items: Vec<HeldItem>,
    /// After this time without a call of the assignee, all its items go back to the pool.
    pub hold: Duration,
}

impl Held {
    /// Returns the ids of the items.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.id.as_str())
    }

    /// Returns whether the assignee holds exactly these items, in any order.
    pub fn are_exactly<I: AsRef<str>>(&self, ids: impl IntoIterator<Item = I>) -> bool {
        let mut expected: Vec<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        let mut held: Vec<&str> = self.ids().collect();
        expected.sort_unstable();
        expected.dedup();
        held.sort_unstable();
        held == expected
    }
}

/// An item that an assignee holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldItem {
    /// The id of the item.
    pub id: String,
    /// When the item goes back to the pool, by Redis' clock, even if the assignee goes on calling.
    pub until: DateTime<Utc>,
}

/// Where an item is that an assignee has named and does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemPlace {
    /// In the pool.
    Open,
    /// With another assignee.
    Assigned,
    /// The assignee has finished it.
    Done,
    /// Another assignee has finished it.
    DoneByOther,
    /// Nowhere: it was never added, was removed by a rebuild, or was finished more than an hour
    /// ago.
    Unknown,
}

impl ItemPlace {
    pub(crate) fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'o' => Self::Open,
            'a' => Self::Assigned,
            'd' => Self::Done,
            'f' => Self::DoneByOther,
            'u' => Self::Unknown,
            _ => return None,
        })
    }

    /// Returns the code of the place, for programs: `open`, `assigned_to_another`, `done`,
    /// `done_by_another` or `unknown`. Its `Display` has spaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Assigned => "assigned_to_another",
            Self::Done => "done",
            Self::DoneByOther => "done_by_another",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ItemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().replace('_', " "))
    }
}

/// Which items a verb has settled, and which it has not because the assignee does not hold them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "items that the assignee no longer holds are refused"]
pub struct Settled {
    /// The items that are settled, now or by an earlier call of the assignee.
    pub accepted: Vec<String>,
    /// The items that the assignee does not hold, and where they are.
    pub refused: Vec<(String, ItemPlace)>,
}

impl Settled {
    /// Returns the items if all were settled.
    ///
    /// # Errors
    /// [`DispenserError::NotHeld`] names the first item that was not. The others are settled.
    pub fn all(self) -> Result<Vec<String>, DispenserError> {
        match self.refused.into_iter().next() {
            Some((item, place)) => Err(DispenserError::NotHeld { item, place }),
            None => Ok(self.accepted),
        }
    }
}

/// The counts of a dispenser at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispenserDetails {
    /// Items in the pool.
    pub open: u64,
    /// Items with assignees.
    pub assigned: u64,
    /// Assignees that have called within their hold time, also those without items.
    pub assignees: u64,
    /// How long the first item of the pool has waited. A step of priority counts as a minute.
    pub first_waits: Option<Duration>,
    /// Whether a rebuild is open.
    pub is_rebuilding: bool,
    /// Whether it has items, or a program has ever added some. If not, its name may be misspelt.
    pub is_known: bool,
}

/// An item of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRow {
    /// The id of the item.
    pub id: String,
    /// Since when it waits, in ms since the Unix epoch, minus a minute for each step of priority.
    pub rank_ms: i64,
    /// How often it came back to the pool without being done.
    pub returns: u64,
    /// The assignee that had it last, if it came back.
    pub last_assignee: Option<String>,
}

/// An item with an assignee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedRow {
    /// The id of the item.
    pub id: String,
    /// The assignee.
    pub assignee: String,
    /// When the time of the item is over, by Redis' clock.
    pub until: DateTime<Utc>,
}

/// An assignee that has called within its hold time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssigneeRow {
    /// The name.
    pub name: String,
    /// When it is over unless it calls, by Redis' clock.
    pub until: DateTime<Utc>,
    /// How many items it holds.
    pub items: u64,
}

impl From<DispenserError> for Error {
    fn from(problem: DispenserError) -> Self {
        match problem {
            DispenserError::Store(problem) => problem,
            other => Self::invalid(other.to_string()),
        }
    }
}
