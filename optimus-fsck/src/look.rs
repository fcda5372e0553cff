//! Reads the keys of one slot and checks them once: [`look`].

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{
    Error,
    broker::{Broker, KeyFacts, KeyKind},
};

use crate::{
    Basis, Content, Dump, Examined, Violation, check, check_lifetimes, check_types,
    key_table::{expected_type, is_read},
    pointed::pointed,
};

/// The most bytes and keys that are read at one moment. Redis needs a few ms for them.
const MOMENT_BYTES_MAX: u64 = 4 << 20;
const MOMENT_KEYS_MAX: usize = 4_000;
/// The most bytes that are read at all.
const BYTES_MAX: u64 = 256 << 20;
/// How often keys are read again, because new ones have appeared that belong to them.
const ROUNDS: usize = 5;

/// How much of a slot was read, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The names, types and expiries of its keys, because a key has the wrong type.
    Types,
    /// The same, because it has more than 200,000 keys, or they take more than 256 MiB.
    Names,
    /// All keys in short steps. Whether counts and indexes agree is not known, as they change
    /// between the steps.
    Steps,
    /// All keys at one moment.
    Whole,
}

/// The names of the keys of a slot.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) all: BTreeSet<String>,
    /// Whether there are more.
    pub(crate) is_cut: bool,
}

/// What was read: the keys, and after how many ms each expires.
type Read = BTreeMap<String, (Content, i64)>;

/// Reads the keys of a slot, and checks them.
pub(crate) async fn look(broker: &Broker, slot: &str, names: &Names) -> Result<Examined, Error> {
    let listed: Vec<String> = names.all.iter().cloned().collect();
    let facts = broker.key_facts(slot, &listed).await?;
    let facts: Vec<(String, KeyFacts)> =
        listed.into_iter().zip(facts).filter_map(|(name, facts)| Some((name, facts?))).collect();
    let wanted = || facts.iter().filter(|(name, _)| is_read(name));
    let bytes: u64 = wanted().map(|(_, facts)| facts.bytes).sum();
    let types = check_types(facts.iter().map(|(name, facts)| (&**name, &facts.kind)));
    let (read, coverage) = if !types.is_empty() {
        (Read::new(), Coverage::Types)
    } else if names.is_cut || bytes > BYTES_MAX {
        (Read::new(), Coverage::Names)
    } else {
        let kinds = wanted().map(|(name, facts)| (name.clone(), facts.kind.clone())).collect();
        if bytes <= MOMENT_BYTES_MAX && wanted().count() <= MOMENT_KEYS_MAX {
            at_one_moment(broker, slot, kinds).await?
        } else {
            (in_steps(broker, slot, &kinds).await?, Coverage::Steps)
        }
    };
    let tasks = match read.get("tasks") {
        Some((Content::Hash(records), _)) => records.len() as u64,
        _ => 0,
    };
    let violations = if types.is_empty() { wrong_in(read, &facts, coverage) } else { types };
    let keys = facts.len() as u64;
    Ok(Examined { slot: slot.to_owned(), keys, tasks, bytes, coverage, violations })
}

/// Returns what is wrong with the keys, as far as they were read.
fn wrong_in(read: Read, facts: &[(String, KeyFacts)], coverage: Coverage) -> Vec<Violation> {
    let is_whole = coverage >= Coverage::Steps;
    // The other keys are there; no check needs what they hold.
    let others = facts.iter().filter(|(name, _)| !is_read(name) || !is_whole);
    let others = others.map(|(name, facts)| (name.clone(), (nothing(), facts.left_ms)));
    let mut all: Read = others.collect();
    all.extend(read);
    if !is_whole {
        // Whether the mark of a biz id must expire depends on what it holds.
        all.retain(|name, _| !name.starts_with("biz:"));
    }
    let lifetimes: Vec<i64> = all.values().map(|(_, left)| *left).collect();
    let dump: Dump = all.into_iter().map(|(name, (content, _))| (name, content)).collect();
    let mut wrong = if is_whole { check(&dump) } else { crate::check_names(&dump) };
    wrong.extend(check_lifetimes(&dump, &lifetimes));
    wrong.retain(|wrong| match wrong.basis {
        Basis::One => true,
        Basis::Moment => coverage == Coverage::Whole,
        Basis::Rest => false,
    });
    wrong.sort();
    wrong.dedup();
    wrong
}

fn nothing() -> Content {
    Content::Text(Vec::new())
}

/// Reads all keys at one moment, including those that have appeared since the names were read.
async fn at_one_moment(
    broker: &Broker,
    slot: &str,
    mut kinds: BTreeMap<String, KeyKind>,
) -> Result<(Read, Coverage), Error> {
    let mut read = Read::new();
    for _ in 0..ROUNDS {
        let names: Vec<(String, KeyKind)> =
            kinds.iter().map(|(name, kind)| (name.clone(), kind.clone())).collect();
        let answers = broker.read_keys_at_once(slot, &names).await?;
        read =
            names.into_iter().zip(answers).filter_map(|((n, _), read)| Some((n, read?))).collect();
        let new: Vec<String> =
            pointed(&read).into_iter().filter(|name| !kinds.contains_key(name)).collect();
        if new.is_empty() {
            return Ok((read, Coverage::Whole));
        }
        kinds
            .extend(new.into_iter().filter_map(|name| Some((name.clone(), expected_type(&name)?))));
    }
    Ok((read, Coverage::Steps))
}

async fn in_steps(
    broker: &Broker,
    slot: &str,
    kinds: &BTreeMap<String, KeyKind>,
) -> Result<Read, Error> {
    let mut read = Read::new();
    for (name, kind) in kinds {
        if let Some(found) = broker.read_key(slot, name, kind).await? {
            read.insert(name.clone(), found);
        }
    }
    Ok(read)
}
