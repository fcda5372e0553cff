//! The faults between a process and its store: [`Fault`].

use std::time::Duration;

/// A fault of one exchange. An exchange is the commands that a process sends in one write, and
/// their replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The commands do not arrive.
    RequestLost(Silence),
    /// The commands are executed, but the replies do not arrive.
    ReplyLost(Silence),
    /// Only some of the commands arrive before the connection breaks.
    Torn {
        /// The number of commands that arrive.
        arrive: usize,
    },
    /// Each script is called twice, and the second reply arrives.
    Doubled,
    /// The commands arrive this late, and their replies arrive.
    Delayed(Duration),
    /// The connection breaks, and the commands still arrive this late.
    Late(Duration),
    /// One `redis.call` of a script is refused.
    CallFails {
        /// The index of the script in the exchange.
        script: usize,
        /// The index of the call in the script.
        nth: usize,
        /// How the call is refused.
        refusal: Refusal,
    },
    /// The process dies before it sends the commands.
    DiesBefore,
    /// The process dies before the replies arrive.
    DiesAfter,
    /// The store loses the last script calls, and every connection breaks.
    RolledBack {
        /// The number of lost script calls.
        calls: usize,
    },
}

/// How a `redis.call` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Until an operator changes something.
    Lasting,
    /// For a short time.
    Passing,
}

impl Refusal {
    /// Returns one of the two, in turn.
    #[must_use]
    pub fn alternate(nth: usize) -> Self {
        if nth.is_multiple_of(2) { Self::Passing } else { Self::Lasting }
    }
}

/// How a process notices that a reply does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// At once, because the connection breaks.
    Broken,
    /// By the process' own timeout.
    Kept,
}

impl Fault {
    /// The names of all kinds of faults, in the order of the table.
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

    /// Returns the index of the fault in [`KINDS`](Self::KINDS).
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
