//! What an acknowledged submit is worth: [`Durability`].

use std::fmt;

/// What must have happened to a task before its submit is acknowledged.
///
/// Above [`Memory`](Self::Memory) a submit waits for Redis' own confirmation; submits that wait at
/// the same time share one. A submit that was not confirmed in time fails with
/// [`Error::is_unknown_outcome`](crate::Error::is_unknown_outcome): its task is stored, and may be
/// lost if Redis fails now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Redis has it in memory. What that survives is decided by the server's persistence alone:
    /// [`Inspector::server`](crate::Inspector::server) tells.
    #[default]
    Memory,
    /// Redis has synced it to its append-only file (`WAITAOF 1 0`): it survives a crash of the
    /// server and of its machine. Takes Redis 7.2 with `appendonly yes`. With `appendfsync always`
    /// that is a few ms, with `everysec` up to two seconds.
    Fsynced,
    /// So many replicas have received it (`WAIT n`): it survives the loss of the primary, if one of
    /// these replicas takes over.
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
