//! What is wrong with a key: [`Violation`].

use std::{collections::BTreeSet, fmt};

use crate::remedy::Remedy;

/// The most characters of a text, which may quote what is stored.
const TEXT_MAX: usize = 400;

/// What a violation is about, which decides when it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// One task or one key. It is wrong, however the keys were read.
    One,
    /// Keys that must agree at each moment. If they were read one after the other, they may
    /// disagree without any harm.
    Moment,
    /// What scripts keep, and workers or lost writes may break for a moment. In a live store it
    /// means nothing.
    Rest,
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The name of the key within its queue, such as `ready` or `lane:user-7`.
    pub key: String,
    /// What is wrong, without a full stop. The same damage has the same text as long as it lasts,
    /// also while tasks come and go.
    pub text: String,
    /// What it is about.
    pub basis: Basis,
    /// What it means, and what to do.
    pub remedy: Remedy,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The violations that the checks have found.
#[derive(Debug, Default)]
pub(crate) struct Wrong(Vec<Violation>);

impl Wrong {
    pub(crate) fn into_vec(self) -> Vec<Violation> {
        self.0
    }

    /// Adds what is wrong with a key.
    pub(crate) fn add(&mut self, key: &str, text: impl Into<String>) {
        self.add_with(Remedy::Report, key, text);
    }

    pub(crate) fn add_with(&mut self, remedy: Remedy, key: &str, text: impl Into<String>) {
        self.push(Basis::Moment, remedy, key, text);
    }

    /// Adds what is wrong with one task; the text has its id.
    pub(crate) fn of_task(&mut self, key: &str, text: impl Into<String>) {
        self.of_task_with(Remedy::Report, key, text);
    }

    pub(crate) fn of_task_with(&mut self, remedy: Remedy, key: &str, text: impl Into<String>) {
        self.push(Basis::One, remedy, key, text);
    }

    /// Adds what is wrong with a key by itself.
    pub(crate) fn of_key(&mut self, remedy: Remedy, key: &str, text: impl Into<String>) {
        self.push(Basis::One, remedy, key, text);
    }

    /// Adds what is wrong only in a store at rest.
    pub(crate) fn at_rest(&mut self, key: &str, text: impl Into<String>) {
        self.push(Basis::Rest, Remedy::Report, key, text);
    }

    /// Adds that a number differs from what it counts. States the difference, which stays the same
    /// while both change.
    pub(crate) fn count(&mut self, key: &str, field: &str, counted: u64, real: u64) {
        if counted != real {
            let (off, way) = (counted.abs_diff(real), if counted > real { "high" } else { "low" });
            let text = format!("the field `{field}` of `{key}` is {off} too {way}");
            self.add_with(Remedy::Count, key, text);
        }
    }

    /// Adds what is in an index without its key, or has a key and is not in the index.
    pub(crate) fn compare(
        &mut self,
        index: &str,
        kind: &str,
        listed: &BTreeSet<&str>,
        stored: &BTreeSet<&str>,
    ) {
        for name in stored.difference(listed) {
            self.add(index, format!("`{kind}{name}` is there, and `{index}` does not have it"));
        }
        for name in listed.difference(stored) {
            self.add(index, format!("`{index}` has {name:?}, and `{kind}{name}` is not there"));
        }
    }

    fn push(&mut self, basis: Basis, remedy: Remedy, key: &str, text: impl Into<String>) {
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
            text.truncate(end);
            text.push('…');
        }
        self.0.push(Violation { key: key.to_owned(), text, basis, remedy });
    }
}
