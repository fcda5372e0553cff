//! Why a call of a dispenser has failed: [`DispenserError`].

use std::time::Duration;

use crate::{
    Error,
    dispenser::{ASSIGNEE_BYTES_MAX, HELD_MAX, ITEM_BYTES_MAX, ItemPlace},
    id::InvalidName,
    options::PRIORITY_MAX,
};

/// The longest name of a request, in bytes.
pub const ONCE_BYTES_MAX: usize = 256;

/// Why a call of a [`Dispenser`](crate::Dispenser) has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DispenserError {
    /// The name of the dispenser is not a name.
    #[error("dispenser: {0}")]
    Name(#[from] InvalidName),
    /// The id of an item is empty or too long.
    #[error("an item has {bytes} bytes; use 1 to {ITEM_BYTES_MAX}, such as the id of a row")]
    ItemLength {
        /// Its bytes.
        bytes: usize,
    },
    /// The name of an assignee is empty or too long.
    #[error("the name of an assignee has {bytes} bytes; use 1 to {ASSIGNEE_BYTES_MAX}")]
    AssigneeLength {
        /// Its bytes.
        bytes: usize,
    },
    /// The name of a request is too long or empty.
    #[error("the name of a request has {bytes} bytes; use 1 to {ONCE_BYTES_MAX}")]
    OnceLength {
        /// Its bytes.
        bytes: usize,
    },
    /// More items were asked for than an assignee may hold.
    #[error("an assignee can't hold {given} items; use 0 to {HELD_MAX}")]
    TooMany {
        /// How many were asked for.
        given: usize,
    },
    /// A page of rows is empty or too long.
    #[error("a page can't have {given} rows; use 1 to {HELD_MAX}")]
    PageLength {
        /// How many rows were asked for.
        given: usize,
    },
    /// The priority of an item is out of range.
    #[error("the priority {priority} is not between -{PRIORITY_MAX} and {PRIORITY_MAX}")]
    Priority {
        /// The priority.
        priority: i8,
    },
    /// A time of the dispenser is too short or too long.
    #[error("{what} is {time:?}; use 1 ms to 365 days")]
    HoldTime {
        /// The name of the setting.
        what: &'static str,
        /// The time.
        time: Duration,
    },
    /// The assignee does not hold the item, or no longer holds it.
    #[error("the assignee does not hold the item {item:?}, which is {place}")]
    NotHeld {
        /// The item.
        item: String,
        /// Where it is.
        place: ItemPlace,
    },
    /// Another rebuild has begun since, or this one has begun more than an hour ago. What it has
    /// added stays, and it has removed nothing that it had listed.
    #[error("another rebuild has begun, or this one took more than an hour; begin it again")]
    RebuildEnded,
    /// The name of the request was used for another request within the last hour.
    #[error("the name {name:?} was used for another request; use a new name for each request")]
    OnceReused {
        /// The name.
        name: String,
    },
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl DispenserError {
    /// Returns whether the caller's input is wrong, so that a repeat fails again.
    pub fn is_invalid(&self) -> bool {
        match self {
            Self::Store(problem) => problem.is_invalid(),
            Self::NotHeld { .. } | Self::RebuildEnded => false,
            _ => true,
        }
    }
}
