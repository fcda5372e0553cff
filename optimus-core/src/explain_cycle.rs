//! Finds out whether a task waits for itself, also through other queues: [`cycle_of`].

use std::collections::BTreeSet;

use crate::{
    after::Prerequisite,
    broker::{Broker, BrokerError, PrerequisiteDetails},
    id::TaskId,
    record::TaskRecord,
    state::TaskState,
};

/// At most this many tasks are read.
const WALK_MAX: usize = 32;

/// Returns the tasks between a task and itself: it waits for the first, each waits for the next,
/// and the last one waits for it. `unmet` has what it waits for. A submit refuses such a cycle if
/// all its tasks are in one queue.
pub(crate) async fn cycle_of(
    broker: &Broker,
    start: &TaskId,
    unmet: &[PrerequisiteDetails],
) -> Result<Option<Vec<TaskId>>, BrokerError> {
    let mut walk: Vec<(TaskId, Vec<TaskId>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next: Vec<TaskId> = blocked(broker, unmet).await?;
    let mut path = Vec::new();
    loop {
        for id in next {
            if id == *start {
                return Ok(Some(path));
            }
            if walk.len() + seen.len() < WALK_MAX && seen.insert(id.clone()) {
                walk.push((id, path.clone()));
            }
        }
        let Some((id, before)) = walk.pop() else { return Ok(None) };
        path = before;
        let record = TaskRecord::decode(broker.inspect(&id).await?.record).ok();
        let after = record.and_then(|record| record.after);
        let found = match &after {
            Some(after) => broker.prerequisites(&id, after).await?,
            None => Vec::new(),
        };
        next = blocked(broker, &found).await?;
        path.push(id);
    }
}

/// Returns the tasks of these prerequisites that wait themselves.
async fn blocked(broker: &Broker, all: &[PrerequisiteDetails]) -> Result<Vec<TaskId>, BrokerError> {
    let mut ids = Vec::new();
    for one in all.iter().filter(|one| !one.is_met && one.state == TaskState::Blocked) {
        ids.extend(match &one.prerequisite {
            Prerequisite::Task(id) => Some(id.clone()),
            Prerequisite::Key { queue, task, biz_id } => broker.find(queue, task, biz_id).await?,
        });
    }
    Ok(ids)
}
