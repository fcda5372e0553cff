//! The content of a queue's keys, in lines that can be compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Display, Write as _},
};

use crate::dump::{Content, Dump};

/// Every key with its content, one line per member. An empty key does not exist, as in Redis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Picture(BTreeMap<String, Vec<String>>);

impl Picture {
    /// Adds a member to a key.
    pub(crate) fn member(&mut self, key: &str, member: impl Display) {
        let members = self.0.entry(key.to_owned()).or_default();
        let member = member.to_string();
        // Members that Redis stores without an order are sorted here.
        let at = members.partition_point(|other| *other < member);
        members.insert(at, member);
    }

    /// Adds a field with its value, or a member with its score.
    pub(crate) fn pair(&mut self, key: &str, field: impl Display, value: impl Display) {
        self.member(key, format_args!("{field} = {value}"));
    }

    /// Adds a key whose members have an order.
    pub(crate) fn list(&mut self, key: &str, members: impl IntoIterator<Item = String>) {
        let members: Vec<String> = members.into_iter().collect();
        if !members.is_empty() {
            self.0.insert(key.to_owned(), members);
        }
    }

    /// Returns the picture of a store at this time. The picture omits the parts that the reference
    /// does not predict: the bytes of records, the wakeup list, and the names of operations.
    pub(crate) fn of(dump: &Dump, now: u64) -> Self {
        let mut picture = Self::default();
        let is_omitted = |key: &str| key == "wake" || key.starts_with("requeued:");
        for (key, content) in dump.iter().filter(|(key, _)| !is_omitted(key)) {
            match content {
                Content::Text(value) if key.starts_with("biz:") && is_over(value, now) => {}
                Content::Text(value) => picture.list(key, [text(value)]),
                Content::List(items) => picture.list(key, items.iter().map(|item| text(item))),
                Content::Hash(pairs) | Content::Zset(pairs) => {
                    for (field, value) in pairs {
                        picture.entry(key, &text(field), value);
                    }
                }
            }
        }
        picture
    }

    fn entry(&mut self, key: &str, field: &str, value: &[u8]) {
        match key {
            "tasks" | "blobs" => self.member(key, field),
            // A mark may stay until the next success.
            "waiters" if field.starts_with('#') => {}
            // A count of zero is the same as none.
            "meta" if value == b"0" => {}
            _ => self.pair(key, field, text(value).trim_end()),
        }
    }

    /// Returns the members that only one side has, one line for each; empty if both are equal.
    pub(crate) fn difference(&self, expected: &Self) -> String {
        let keys: BTreeSet<&String> = self.0.keys().chain(expected.0.keys()).collect();
        let none = Vec::new();
        let mut text = String::new();
        for key in keys {
            let (ours, theirs) =
                (self.0.get(key).unwrap_or(&none), expected.0.get(key).unwrap_or(&none));
            if ours == theirs {
                continue;
            }
            writeln!(text, "  {key}").expect("a String grows");
            let (extra, missing) = (without(ours, theirs), without(theirs, ours));
            for line in &extra {
                writeln!(text, "    the store alone has      {line}").expect("a String grows");
            }
            for line in &missing {
                writeln!(text, "    the reference alone has  {line}").expect("a String grows");
            }
            if extra.is_empty() && missing.is_empty() {
                let both =
                    format!("    in another order: {ours:?}\n          the reference: {theirs:?}");
                writeln!(text, "{both}").expect("a String grows");
            }
        }
        text
    }
}

/// Returns the members of the first list that are not in the second, counting duplicates.
fn without<'a>(members: &'a [String], others: &[String]) -> Vec<&'a String> {
    let mut left: Vec<&String> = others.iter().collect();
    let mut extra = Vec::new();
    for member in members {
        match left.iter().position(|other| *other == member) {
            Some(at) => drop(left.swap_remove(at)),
            None => extra.push(member),
        }
    }
    extra
}

fn is_over(mark: &[u8], now: u64) -> bool {
    let mark = text(mark);
    let mut parts = mark.rsplitn(3, ':');
    let (phase, until) = (parts.next(), parts.next().and_then(|until| until.parse::<u64>().ok()));
    phase == Some("D") && until.is_some_and(|until| until <= now)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
