//! The failures that an acknowledged submit survives: [`Durability`].

use std::fmt;

/// The condition under which a submit is acknowledged.
///
/// Above [`Memory`](Self::Memory) a submit waits until Redis confirms it. Submits that wait at the
/// same time share one confirmation. A submit that is not confirmed in time fails with
/// [`Error::is_unknown_outcome`](crate::Error::is_unknown_outcome): its task is stored, but may be
/// lost if Redis fails now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Redis has the task in memory. Only the server's persistence decides which failures the task
    /// survives; see [`Inspector::server`](crate::Inspector::server).
    #[default]
    Memory,
    /// Redis has synced the task to its append-only file (`WAITAOF 1 0`), so the task survives a
    /// crash of the server and of its machine. This needs Redis 7.2 or newer with `appendonly yes`.
    /// A submit takes a few ms with `appendfsync always`, and up to two seconds with `everysec`.
    Fsynced,
    /// This many replicas have received the task (`WAIT n`). The task survives the loss of the
    /// primary if one of these replicas is promoted.
    Replicated(u32),
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("stored in memory"),
            Self::Fsynced => f.write_str("synced to disk"),
            Self::Replicated(1) => f.write_str("received by a replica"),
            Self::Replicated(count) => write!(f, "received by {count} replicas"),
        }
    }
}
