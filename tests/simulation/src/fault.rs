//! What can go wrong between a process and its store: [`Fault`].

use std::time::Duration;

/// What happens to one exchange: the commands that a process sends in one write, and their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The commands never arrive.
    RequestLost(Silence),
    /// They are done, and the answers never come.
    ReplyLost(Silence),
    /// Only so many of them arrive before the connection breaks.
    Torn {
        /// How many.
        arrive: usize,
    },
    /// Each script is called twice, and the second answer comes.
    Doubled,
    /// They arrive this late, and are answered.
    Delayed(Duration),
    /// The connection breaks, and they arrive this late all the same.
    Late(Duration),
    /// In one script one `redis.call` is refused.
    CallFails {
        /// Which script of the exchange, from 0.
        script: usize,
        /// Which of its calls, from 0.
        nth: usize,
        /// Whether the refusal passes by itself.
        passing: bool,
    },
    /// The process dies before it sends them.
    DiesBefore,
    /// The process dies before their answers come.
    DiesAfter,
    /// The store comes back without the last so many script calls, and every connection breaks.
    RolledBack {
        /// How many.
        calls: usize,
    },
}

/// How a process learns that an answer will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// At once: the connection is broken.
    Broken,
    /// By its own timeout.
    Kept,
}

impl Fault {
    /// The names of all kinds, in the order of the table.
    pub const KINDS: [&'static str; 10] = [
        "request lost",
        "reply lost",
        "torn",
        "doubled",
        "delayed",
        "late",
        "redis.call failed",
        "dead before",
        "dead after",
        "rolled back",
    ];

    /// Which of [`KINDS`](Self::KINDS) it is.
    pub fn kind(self) -> usize {
        match self {
            Self::RequestLost(_) => 0,
            Self::ReplyLost(_) => 1,
            Self::Torn { .. } => 2,
            Self::Doubled => 3,
            Self::Delayed(_) => 4,
            Self::Late(_) => 5,
            Self::CallFails { .. } => 6,
            Self::DiesBefore => 7,
            Self::DiesAfter => 8,
            Self::RolledBack { .. } => 9,
        }
    }
}
