//! What the posts of a roster are for: [`PostFunction`].

use std::sync::Arc;

use optimus_core::{InvalidName, RosterName, Sharded};

use crate::source_desk::SourceDesk;

/// The function that runs while a post is held.
#[derive(Clone)]
pub(crate) enum PostFunction {
    /// The posts are the shards of a sharded function.
    Sharded(Sharded),
    /// The posts are the slices of a source.
    Source(Arc<SourceDesk>),
}

impl PostFunction {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sharded(sharded) => sharded.name(),
            Self::Source(desk) => desk.source().name(),
        }
    }

    pub(crate) fn roster(&self) -> Result<RosterName, InvalidName> {
        match self {
            Self::Sharded(sharded) => RosterName::shards(sharded.name()),
            Self::Source(desk) => Ok(desk.roster().clone()),
        }
    }

    /// Returns how many posts the code asks for.
    pub(crate) fn posts(&self) -> u16 {
        match self {
            Self::Sharded(sharded) => sharded.options().shards,
            Self::Source(desk) => desk.source().options().slices,
        }
    }

    /// Returns the texts of events, for people.
    pub(crate) fn texts(&self) -> &'static Texts {
        match self {
            Self::Sharded(_) => &SHARDS,
            Self::Source(_) => &SLICES,
        }
    }
}

/// The texts of events about the posts of one roster.
pub(crate) struct Texts {
    /// The worker holds others than before.
    pub(crate) changed: &'static str,
    /// A heartbeat was refused.
    pub(crate) refused: &'static str,
    /// Redis has another number of posts than the code.
    pub(crate) other_count: &'static str,
}

static SHARDS: Texts = Texts {
    changed: "the shards of this worker have changed",
    refused: "Redis refuses the heartbeats for these shards; they stop with the lease",
    other_count: "Redis has another number of shards than the code, and it counts; to change it, \
                  call client.shards(name).set_count(number)",
};

static SLICES: Texts = Texts {
    changed: "the slices of sources of this worker have changed",
    refused: "Redis refuses the heartbeats for this source; its slices stop with the lease",
    other_count: "Redis has another number of slices than the code, and it counts; to change it, \
                  call client.source(name).set_slices(number)",
};
