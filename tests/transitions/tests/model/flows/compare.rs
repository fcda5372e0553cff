//! What users see of the store, compared with the reference.

use std::collections::BTreeMap;

use optimus_core::{TaskId, TaskState};

use crate::{
    bench::START,
    dump::{Content, Dump},
};

use super::{
    reference::{Departure, Place},
    run::FlowRun,
};

/// Where the store has a task.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Waits,
    Working(String),
    Dead,
    Cancelled,
    Gone,
}

/// Keys that nothing needs once all tasks have ended. A name that ends in a colon has an owner.
const OF_LIVE_TASKS: [&str; 16] = [
    "unmet", "asks", "giveups", "ties", "after:", "outbox:", "outboxes", "wait:", "waits", "gate:",
    "gates", "busy:", "permits", "loans", "gather:", "gathers",
];

/// The places of all tasks of a queue that are stored.
fn places(dump: &Dump) -> BTreeMap<String, Found> {
    let mut places = BTreeMap::new();
    let members = |name: &str| match dump.get(name) {
        Some(Content::Hash(pairs) | Content::Zset(pairs)) => pairs.clone(),
        _ => Vec::new(),
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("an id is text");
    for (id, _) in members("tasks") {
        places.insert(text(id), Found::Waits);
    }
    for (id, _) in members("dead") {
        places.insert(text(id), Found::Dead);
    }
    for (id, _) in members("cancelled") {
        places.insert(text(id), Found::Cancelled);
    }
    for name in dump.keys().filter(|name| name.starts_with("working:")) {
        for (id, token) in members(name).into_iter().filter(|(id, _)| id != b"#") {
            places.insert(text(id), Found::Working(text(token)));
        }
    }
    places
}

/// The time of a field of `meta`, in ms after the start.
fn meta_time(dump: &Dump, field: &str) -> Option<u64> {
    let Some(Content::Hash(meta)) = dump.get("meta") else { return None };
    let value = meta.iter().find(|(name, _)| name == field.as_bytes());
    let value = String::from_utf8_lossy(&value?.1).into_owned();
    let ms: u64 = value.rsplit(' ').next()?.parse().ok()?;
    Some(ms.saturating_sub(START))
}

impl FlowRun<'_> {
    /// Compares every task, and the structure; and somebody must look at each task in time.
    pub(crate) async fn compare(&self) -> Result<(), Departure> {
        for queue in 0..2 {
            let dump = self.benches[queue].dump().await;
            let found = places(&dump);
            for (id, task) in self.world.tasks.iter().filter(|(_, task)| task.queue == queue) {
                let found = found.get(&id.stored()).unwrap_or(&Found::Gone);
                let expected = match &task.place {
                    Place::Waits(_) => Found::Waits,
                    Place::Working(lease) => Found::Working(lease.token.to_string()),
                    Place::Dead => Found::Dead,
                    Place::Cancelled => Found::Cancelled,
                    Place::Gone => Found::Gone,
                };
                let is_early = *found == Found::Cancelled
                    && expected == Found::Waits
                    && self.world.may_be_cancelled(id);
                if *found != expected && !is_early {
                    return Err(format!("{id} is {found:?}, not {expected:?}"));
                }
            }
            let mut wrong = optimus_fsck::check(&dump);
            wrong.retain(|wrong| !wrong.text.starts_with("the ledger of"));
            if !wrong.is_empty() {
                return Err(format!("fsck finds {wrong:?}"));
            }
            self.check_notice(queue, &dump)?;
        }
        Ok(())
    }

    /// A task that may start is looked at: by a waiter, or at a time for which a worker waits.
    fn check_notice(&self, queue: usize, dump: &Dump) -> Result<(), Departure> {
        if dump.contains_key("wake") || self.woken[queue] {
            return Ok(());
        }
        let hints = [meta_time(dump, "due"), meta_time(dump, "timer")];
        let hint = hints.into_iter().flatten().min();
        for id in self.world.tasks.keys() {
            let Some(at) = self.world.starts_at(id, queue, self.now) else { continue };
            if hint.is_none_or(|hint| hint > at) {
                return Err(format!("{id} may start at {at}, and a worker looks at {hint:?}"));
            }
        }
        Ok(())
    }

    /// Compares every group, after relays have carried everything.
    pub(crate) async fn compare_groups(&self) -> Result<(), Departure> {
        for group in &self.world.groups {
            let broker = self.benches[group.queue].at(self.now);
            let found = broker.group(&group.id).await.expect("a group can be read");
            let Some(found) = found else {
                return Err(format!("nothing is known of the group {}", group.id));
            };
            let counts = [found.total, found.done, found.failed, found.cancelled, found.lost];
            let counts = counts.map(|count| count as usize);
            let mut expected = group.progress();
            if group.ended == Some(TaskState::Cancelled) {
                // Members of two queues end in the order in which relays carry their ends, and
                // none counts after the one that cancels the group.
                expected[1..].copy_from_slice(&counts[1..]);
            }
            if (found.ended, counts) != (group.ended, expected) {
                return Err(format!("a group is {found:?}, not {group:?}"));
            }
            let results = broker.group_results(&group.id, 0, group.total).await;
            let results = results.expect("results can be read");
            for (index, result) in (0..).zip(results) {
                let pending = optimus_core::MemberResult::Pending;
                let expected = group.counted.get(&index).unwrap_or(&pending);
                if result != *expected {
                    return Err(format!("member {index} of {group:?} brought {result:?}"));
                }
            }
        }
        Ok(())
    }

    /// No key is left that only tasks need that have not ended.
    pub(crate) async fn assert_nothing_left(&self) -> Result<(), Departure> {
        for bench in self.benches {
            let left = bench.names().await.into_iter().find(|name| {
                let kind = name.find(':').map_or(name.as_str(), |colon| &name[..=colon]);
                OF_LIVE_TASKS.contains(&kind)
            });
            if let Some(name) = left {
                return Err(format!("{name} of {} is left", bench.queue));
            }
        }
        Ok(())
    }

    /// The tasks that have not ended.
    pub(crate) fn live(&self) -> Vec<TaskId> {
        let is_live = |place: &Place| matches!(place, Place::Waits(_) | Place::Working(_));
        let live = self.world.tasks.iter().filter(|(_, task)| is_live(&task.place));
        live.map(|(id, _)| id.clone()).collect()
    }
}
