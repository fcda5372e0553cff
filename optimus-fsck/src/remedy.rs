//! What a violation means, and what to do about it: [`Remedy`].

use std::fmt;

/// What a violation means, and what to do about it. Its text has the whole advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The cause must be found.
    Report,
    /// A ready task that no list has.
    Lost,
    /// A task in several states.
    Twice,
    /// A task without its record.
    NoRecord,
    /// A record that cannot be read.
    Record,
    /// Data of a task that is gone.
    Leftover,
    /// A task that may wait forever.
    Stuck,
    /// A number that differs from what it counts.
    Count,
    /// A field that must be a number and is none.
    Number,
    /// Due tasks that no claim looks for.
    Due,
    /// The mark of a key in `waiters` that is missing.
    Mark,
    /// A permit that nobody gives back.
    Permit,
    /// A worker without a lease.
    Owner,
    /// A biz id of no task.
    Biz,
    /// A task without the mark of its biz id.
    NoBiz,
    /// A ledger that is never purged.
    Ledger,
    /// A damaged schedule.
    Schedule,
    /// A queue that workers of earlier releases would change wrongly.
    Upgrade,
    /// A key of another program.
    Foreign,
    /// A key of the wrong type.
    Kind,
    /// A temporary key that does not expire.
    Endless,
    /// A key that must not expire.
    Expires,
}

/// What to do about a violation whose cause must be found.
const REPORT: &str = "Another program, a restored backup or a Redis that lost writes may have done \
    this. If none of them did, it is a bug of Optimus: report it.";

/// What to do about a field that must be a number.
const NUMBER: &str = "Scripts fail on it, or count wrongly. With HSET, set `needs` to 7, `limited` \
    to 1, `widest` to 65535, `purged_born` to the present ms, and `places` above all scores of the \
    lanes. Remove another field with HDEL: if it counts something, this command then says by how \
    much it is off. If it was `paused`, pause the queue again.";

impl Remedy {
    /// Returns what the violation means and what to do. "This key" is the key of the violation.
    pub fn text(self) -> &'static str {
        match self {
            Self::Report => REPORT,
            Self::Lost => {
                "No worker runs it. If it is of no lane and is not gathered, add its id to this \
                 key with RPUSH: then a worker runs it."
            }
            Self::Twice => {
                "It may run twice. Keep it where it belongs, and remove its id from the other key."
            }
            Self::NoRecord => {
                "Its arguments are lost, so it cannot run. Submit it again, and remove its id \
                 from where it is."
            }
            Self::Record => {
                "If a newer release has stored it, its workers read it. Otherwise remove it with \
                 `optimus task delete`."
            }
            Self::Leftover => {
                "It only takes memory. Remove the id from this key: HDEL for a hash, ZREM for a \
                 sorted set."
            }
            Self::Stuck => {
                "It may wait forever. `optimus task explain` says what for; cancel it and submit \
                 it again."
            }
            Self::Count => {
                "Numbers that Optimus shows are wrong by this much; no task is lost. Correct the \
                 field, for example with HINCRBY."
            }
            Self::Number => NUMBER,
            Self::Due => {
                "It starts late or never. Set the field `due` of this key to 0 with HSET: then \
                 the next claim looks for due tasks."
            }
            Self::Mark => {
                "Set the field `#` with the name of that key, such as `#permits`, to 1 in this \
                 key, with HSET."
            }
            Self::Permit => {
                "It may keep a place of a limit, so that fewer tasks run at once. Remove the id \
                 from this key: HDEL for a hash, ZREM for a sorted set."
            }
            Self::Owner => {
                "Nobody takes tasks back from it. Add it to `workers` with ZADD and the score 0: \
                 then another worker takes its tasks and removes it."
            }
            Self::Biz => {
                "Calls with this biz id may be refused as duplicates. If no task has it, remove \
                 this key with UNLINK."
            }
            Self::NoBiz => "Until it ends, another call with its biz id is accepted, too.",
            Self::Ledger => "It only takes memory. Remove it with UNLINK if its client has gone.",
            Self::Schedule => {
                "It may never be due. Put it again, or remove it with `optimus schedule remove`."
            }
            Self::Upgrade => "Stop workers of earlier releases: they would break these tasks.",
            Self::Foreign => {
                "If no newer release of Optimus runs, another program has written it: remove it."
            }
            Self::Kind => {
                "Another program has replaced it, and scripts that need it fail. Rename or remove \
                 it. The other checks of these keys are left out until then."
            }
            Self::Endless => "It only takes memory. Give it an expiry with PEXPIRE.",
            Self::Expires => "Redis will remove it. Keep it with PERSIST at once.",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
