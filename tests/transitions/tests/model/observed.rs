//! The choices of the store where the specification allows several: [`Observed`].

use std::collections::BTreeMap;

use optimus_core::{QueueName, TaskId, WorkerId};

use crate::{
    answer::Answer,
    dump::{Content, Dump},
};

/// The length of a stored id.
const ID_BYTES: usize = 22;

/// A call's answer, and the parts of the store that show how it was done.
pub(crate) struct Observed<'a> {
    pub(crate) answer: &'a Answer,
    /// The entries of the ready list after the call, as ids.
    pub(crate) ready: Vec<TaskId>,
    /// The tasks that each worker holds after the call.
    pub(crate) held: BTreeMap<WorkerId, Vec<TaskId>>,
    /// The tasks of each client's completion messages after the call, in order.
    pub(crate) completions: BTreeMap<String, Vec<TaskId>>,
    /// The effects of the queue on itself after the call, in order.
    pub(crate) outbox: Vec<String>,
}

impl<'a> Observed<'a> {
    /// Reads the state of a store after the call.
    pub(crate) fn of(answer: &'a Answer, dump: &Dump, queue: &QueueName) -> Self {
        let mut observed = Self {
            answer,
            ready: vec![],
            held: BTreeMap::new(),
            completions: BTreeMap::new(),
            outbox: vec![],
        };
        for (name, content) in dump {
            match (name.split_once(':'), content) {
                (None, Content::List(entries)) if name == "ready" => {
                    observed.ready = ids(queue, entries.iter().map(|entry| last_of(entry)));
                }
                (Some(("working", worker)), Content::Hash(fields)) => {
                    let held = ids(queue, fields.iter().map(|(id, _)| &id[..]));
                    observed.held.insert(WorkerId::from_stored(worker), held);
                }
                (Some(("completions", client)), Content::List(completions)) => {
                    let tasks =
                        ids(queue, completions.iter().map(|completion| first_of(completion)));
                    observed.completions.insert(client.to_owned(), tasks);
                }
                (Some(("outbox", _)), Content::Zset(effects)) => {
                    // Numbers have the same count of digits, so the members are in order.
                    let text = |member: &[u8]| String::from_utf8_lossy(member).into_owned();
                    let effects = effects.iter().filter_map(|(member, _)| {
                        text(member).split_once(' ').map(|(_, effect)| effect.to_owned())
                    });
                    observed.outbox = effects.collect();
                }
                _ => {}
            }
        }
        observed
    }
}

/// Returns the id of an entry, after its stamp.
fn last_of(entry: &[u8]) -> &[u8] {
    &entry[entry.len().saturating_sub(ID_BYTES)..]
}

/// Returns the id of a completion message, before the state.
fn first_of(completion: &[u8]) -> &[u8] {
    &completion[..completion.len().min(ID_BYTES)]
}

fn ids<'a>(queue: &QueueName, stored: impl Iterator<Item = &'a [u8]>) -> Vec<TaskId> {
    let id = |stored| TaskId::from_stored(queue.clone(), std::str::from_utf8(stored).ok()?).ok();
    stored.filter_map(id).collect()
}
