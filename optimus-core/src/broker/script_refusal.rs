//! The closed list of words with which a script refuses.

/// Why a script refused. The words are those of `lua/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The worker's lease is over, or it was never registered.
    Lapsed,
    /// A later call of this worker was already answered, what the caller has read has changed, or a
    /// later carrier of the operation is there.
    Stale,
    /// It is not time yet: the schedule is not due, or the lease of another is not over.
    Early,
    /// The call is too old for the client's ledger to answer it, or the operation was counted too
    /// long ago.
    Forgotten,
    /// The queue is in use by newer programs.
    Newer,
    /// The queue is paused.
    Paused,
    /// The task, or the operation, is in a state that the verb does not apply to.
    WrongState,
    /// Another task holds the biz id.
    Duplicate,
    /// The task would wait for itself.
    Cycle,
    /// Nobody has ever held a post of the roster, or it has no post of that number.
    Absent,
    /// The name of a kept answer was used for another request.
    Reused,
}

impl Refusal {
    /// Every refusal with its word.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Lapsed, "LAPSED"),
        (Self::Stale, "STALE"),
        (Self::Early, "EARLY"),
        (Self::Forgotten, "FORGOTTEN"),
        (Self::Newer, "NEWER"),
        (Self::Paused, "PAUSED"),
        (Self::WrongState, "WRONG_STATE"),
        (Self::Duplicate, "DUPLICATE"),
        (Self::Cycle, "CYCLE"),
        (Self::Absent, "ABSENT"),
        (Self::Reused, "REUSED"),
    ];

    /// Returns the refusal with this word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(refusal, name)| (name == word).then_some(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::scripts;

    #[test]
    fn scripts_use_all_listed_refusals_and_no_other() {
        for script in scripts::ALL {
            let header = script.source().rsplit("-- KEYS ").next().expect("a header");
            for (at, _) in header.match_indices("return { '") {
                let word = header[at + 10..].split('\'').next().expect("a word");
                if word != "OK" {
                    assert!(Refusal::from_word(word).is_some(), "{}: {word}", script.name);
                }
            }
        }
        for (_, word) in Refusal::ALL {
            let quoted = format!("{{ '{word}'");
            assert!(scripts::ALL.iter().any(|script| script.source().contains(&quoted)), "{word}");
        }
    }
}
