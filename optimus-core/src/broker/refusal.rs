//! The closed list of words by which a script refuses.

/// Why a script did nothing. The words are those of `lua/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The worker's lease is over, or it was never registered.
    Lapsed,
    /// An older call of this worker than one that was already answered.
    Stale,
    /// An older call of this client than its ledger can answer.
    Forgotten,
    /// The queue is in use by newer programs.
    Newer,
    /// The queue is paused.
    Paused,
    /// The task is not where the verb could take it from.
    WrongState,
    /// The biz id is another task's.
    Duplicate,
}

impl Refusal {
    /// Every refusal with its word.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Lapsed, "LAPSED"),
        (Self::Stale, "STALE"),
        (Self::Forgotten, "FORGOTTEN"),
        (Self::Newer, "NEWER"),
        (Self::Paused, "PAUSED"),
        (Self::WrongState, "WRONG_STATE"),
        (Self::Duplicate, "DUPLICATE"),
    ];

    /// The refusal of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(refusal, name)| (name == word).then_some(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::scripts;

    #[test]
    fn scripts_refuse_with_the_listed_words_only_and_with_each_of_them() {
        let mut used = std::collections::BTreeSet::new();
        for script in scripts::ALL {
            let header = script.source.rsplit("-- KEYS ").next().expect("a header");
            for (at, _) in header.match_indices("return { '") {
                let word = header[at + 10..].split('\'').next().expect("a word");
                if word != "OK" {
                    assert!(Refusal::from_word(word).is_some(), "{}: {word}", script.name);
                    used.insert(word.to_owned());
                }
            }
        }
        assert_eq!(used.len(), Refusal::ALL.len(), "used: {used:?}");
    }
}
