//! A user that cancels tasks.

use optimus_core::{CancelAnswer, TaskId};
use optimus_testkit::history::What;

use super::User;
use crate::queues::queue;

impl User {
    pub(crate) async fn cancel_task(&self, task: u64, id: &TaskId) {
        self.write(What::Cancel { task });
        match self.client.cancel(id).await {
            Ok(CancelAnswer::Cancelled) => self.write(What::Cancelled { task }),
            Ok(_) => self.write(What::Stopping { task }),
            Err(problem) => self.refused(task, &problem),
        }
    }

    /// Cancels several tasks, and one that does not exist.
    pub(crate) async fn cancel_tasks(&self, tasks: &[(u64, TaskId)]) {
        for (task, _) in tasks {
            self.write(What::Cancel { task: *task });
        }
        let unknown = TaskId::new(queue());
        let ids = tasks.iter().map(|(_, id)| id.clone()).chain([unknown]);
        let answers = self.client.cancel_all(ids).await;
        for ((task, _), answer) in tasks.iter().zip(answers) {
            match answer {
                Ok(CancelAnswer::Cancelled) => self.write(What::Cancelled { task: *task }),
                Ok(_) => self.write(What::Stopping { task: *task }),
                Err(problem) => self.refused(*task, &problem),
            }
        }
    }
}
