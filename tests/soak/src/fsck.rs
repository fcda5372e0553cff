//! Checks the structure of a queue at rest: all indexes must agree with each other.

use std::collections::HashSet;

use optimus::{Inspector, QueueName};

use crate::store::Store;

/// The keys with data of a task, by id. This data must not outlive the task's record.
const TASK_DATA: [&str; 5] = ["blobs", "priorities", "tries", "errors", "cancel"];

/// Keys that nothing needs once all tasks have ended. A name that ends in a colon has an owner.
const OF_LIVE_TASKS: [&str; 17] = [
    "unmet", "ties", "after:", "asks", "giveups", "outbox:", "outboxes", "wait:", "waits", "gate:",
    "gates", "busy:", "permits", "gather:", "gathers", "lane:", "lanes",
];

/// Returns the problems of a queue in which no task waits or runs, one sentence for each.
///
/// # Errors
/// When Redis is not available.
pub(crate) async fn check(
    store: &Store,
    inspector: &Inspector,
    queue: &str,
) -> anyhow::Result<Vec<String>> {
    let queue = QueueName::new(queue)?;
    let mut wrong = Vec::new();
    let counts = inspector.counts(&queue).await?;
    let waits = counts.ready + counts.delayed + counts.retry + counts.blocked;
    if waits + counts.working > 0 {
        wrong.push(format!("tasks still wait or run: {counts:?}"));
    }
    for worker in inspector.workers(&queue).await? {
        if !worker.running.is_empty() {
            wrong.push(format!("{} still holds {:?}", worker.id, worker.running));
        }
    }
    let key = |name: &str| format!("{{optimus:{queue}:0}}:{name}");
    let mut ended: HashSet<String> = HashSet::new();
    for state in ["dead", "cancelled"] {
        let ids: Vec<String> = store.command(&["ZRANGE", &key(state), "0", "-1"]).await?;
        for id in ids {
            if !ended.insert(id.clone()) {
                wrong.push(format!("{id} is dead and cancelled"));
            }
        }
    }
    let records: HashSet<String> = store.command(&["HKEYS", &key("tasks")]).await?;
    for id in ended.symmetric_difference(&records) {
        wrong.push(format!("{id} has a record or a state, but not both"));
    }
    for name in TASK_DATA {
        let ids: Vec<String> = store.command(&["HKEYS", &key(name)]).await?;
        for id in ids.iter().filter(|id| !records.contains(*id)) {
            wrong.push(format!("{name} still has {id}"));
        }
    }
    marks(store, &key("biz:"), &records, &mut wrong).await?;
    held_by_nobody(store, &key("working:"), &mut wrong).await?;
    left_by_flows(store, &key(""), &mut wrong).await?;
    Ok(wrong)
}

/// Checks that no key is left that only tasks need that have not ended.
async fn left_by_flows(store: &Store, prefix: &str, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let keys: Vec<String> = store.command(&["KEYS", &format!("{prefix}*")]).await?;
    for key in keys {
        let name = &key[prefix.len()..];
        let kind = name.find(':').map_or(name, |colon| &name[..=colon]);
        if OF_LIVE_TASKS.contains(&kind) {
            wrong.push(format!("{key} is left"));
        }
    }
    Ok(())
}

/// Checks that each biz id belongs to an existing task.
async fn marks(
    store: &Store,
    prefix: &str,
    records: &HashSet<String>,
    wrong: &mut Vec<String>,
) -> anyhow::Result<()> {
    let keys: Vec<String> = store.command(&["KEYS", &format!("{prefix}*")]).await?;
    for key in keys {
        let mark: String = store.command(&["GET", &key]).await?;
        let owner = mark.split(':').next().unwrap_or_default();
        // A task that has succeeded keeps its biz id until the window is over.
        if !mark.ends_with(":D") && !records.contains(owner) {
            wrong.push(format!("{key} belongs to {owner}, which no longer exists"));
        }
    }
    Ok(())
}

/// Checks that the tasks of a worker are removed with it, except for the field of its last claim.
async fn held_by_nobody(
    store: &Store,
    prefix: &str,
    wrong: &mut Vec<String>,
) -> anyhow::Result<()> {
    let keys: Vec<String> = store.command(&["KEYS", &format!("{prefix}*")]).await?;
    for key in keys {
        let fields: Vec<String> = store.command(&["HKEYS", &key]).await?;
        for id in fields.iter().filter(|field| *field != "#") {
            wrong.push(format!("{key} still holds {id}"));
        }
    }
    Ok(())
}
