//! A user that requeues tasks.

use optimus_core::{TaskId, TaskState};
use optimus_testkit::history::What;

use super::User;

impl User {
    pub(super) async fn requeue(&mut self) {
        let queue = self.queues.pick(&mut self.random).clone();
        let state = if self.random.bool() { TaskState::Dead } else { TaskState::Cancelled };
        let inspector = self.client.inspector();
        let Ok(page) = inspector.list(&queue, state, None, 50).await else { return };
        let known = self.shared.known().clone();
        let Some(row) = self.random.choice(page.rows) else { return };
        if let Some((task, id)) = known.into_iter().find(|(_, known)| *known == row.id) {
            self.requeue_task(task, &id).await;
        }
    }

    pub(crate) async fn requeue_task(&self, task: u64, id: &TaskId) {
        self.write(What::Requeue { task });
        match self.client.requeue(id).await {
            Ok(()) => self.write(What::Requeued { task }),
            Err(problem) => self.refused(task, &problem),
        }
    }
}
