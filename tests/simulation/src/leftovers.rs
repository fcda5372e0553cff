//! Checks the end of a load with flows. Nothing is Blocked without a reason, and no key is left
//! that only live tasks need.

use std::sync::Arc;

use optimus_core::{Client, Obstacle, QueueName, TaskId, TaskState};
use optimus_testkit::history::What;

use crate::dump::dump;
use crate::world::World;

/// Keys that nothing needs once all tasks have ended. A name that ends in a colon has an owner.
const OF_LIVE_TASKS: [&str; 13] = [
    "unmet", "asks", "giveups", "outbox:", "outboxes", "wait:", "waits", "gate:", "gates", "busy:",
    "permits", "gather:", "gathers",
];
const PAGE: u16 = 100;

/// The view of a load that makes no more progress.
pub(crate) struct Stuck<'a> {
    pub(crate) world: &'a Arc<World>,
    pub(crate) client: &'a Client,
}

impl Stuck<'_> {
    /// Returns the queues in which tasks are Blocked.
    async fn queues(&self) -> Vec<QueueName> {
        let mut blocked = Vec::new();
        for queue in self.world.queues.names() {
            let counts = self.client.inspector().counts(queue).await;
            if counts.is_ok_and(|counts| counts.blocked > 0) {
                blocked.push(queue.clone());
            }
        }
        blocked
    }

    async fn listed(&self, queue: &QueueName, state: TaskState) -> Vec<TaskId> {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let inspector = self.client.inspector();
            let Ok(page) = inspector.list(queue, state, after.as_ref(), PAGE.into()).await else {
                return ids;
            };
            ids.extend(page.rows.into_iter().map(|row| row.id));
            after = page.next;
            if after.is_none() {
                return ids;
            }
        }
    }

    /// Complains about each Blocked task that nothing keeps from running.
    pub(crate) async fn expect_reasons(&self) {
        for queue in &self.queues().await {
            for id in self.listed(queue, TaskState::Blocked).await {
                if let Some(problem) = self.without_reason(&id).await {
                    let number = self.world.network.journal.number_of(&id.to_string());
                    self.world.network.complain(format!(
                        "task {} ({id}) is Blocked without a reason: {problem}",
                        number.map_or_else(|| "?".to_owned(), |number| number.to_string())
                    ));
                }
            }
        }
    }

    /// Returns the explanation of the task, unless it contains a reason.
    async fn without_reason(&self, id: &TaskId) -> Option<String> {
        let explanation = match self.client.inspector().explain(id).await {
            Ok(explanation) => explanation,
            Err(problem) => return Some(problem.to_string()),
        };
        for obstacle in &explanation.obstacles {
            match obstacle {
                // But for the last one: it was Blocked when it was listed, and is not any more.
                Obstacle::Ended { .. }
                | Obstacle::Running(_)
                | Obstacle::LostWorker { .. }
                | Obstacle::NotDue { .. }
                | Obstacle::Prerequisite(_) => return None,
                Obstacle::Lane { holders, .. } => {
                    for holder in holders {
                        let state = self.client.handle::<u64>(holder.clone()).status().await;
                        if matches!(state, Ok(TaskState::Dead)) {
                            return None;
                        }
                    }
                }
                _ => {}
            }
        }
        Some(format!("{:?}", explanation.obstacles))
    }

    /// Deletes the dead tasks that block their lanes. Returns how many there were.
    pub(crate) async fn unblock_lanes(&self) -> usize {
        let (journal, mut count) = (&self.world.network.journal, 0);
        for queue in &self.queues().await {
            for id in self.listed(queue, TaskState::Dead).await {
                let Some(task) = journal.number_of(&id.to_string()) else { continue };
                if journal.blocks_a_lane(task) {
                    journal.write(0, What::Delete { task });
                    drop(self.client.delete(&id).await);
                    count += 1;
                }
            }
        }
        count
    }

    /// Cancels what is still Blocked.
    pub(crate) async fn cancel_blocked(&self) {
        let journal = &self.world.network.journal;
        for queue in &self.queues().await {
            let ids = self.listed(queue, TaskState::Blocked).await;
            for id in &ids {
                if let Some(task) = journal.number_of(&id.to_string()) {
                    journal.write(0, What::Cancel { task });
                }
            }
            drop(self.client.cancel_all(ids).await);
        }
    }
}

/// Complains about each key that only live tasks need. All tasks have ended.
pub(crate) fn expect_none(world: &World) {
    for (queue, dump) in dump(&world.network.store) {
        for name in dump.keys.keys() {
            let kind = name.find(':').map_or(name.as_str(), |colon| &name[..=colon]);
            if OF_LIVE_TASKS.contains(&kind) {
                let content = &dump.keys[name];
                world.network.complain(format!("{queue}: {name} is left: {content:?}"));
            }
        }
    }
}
