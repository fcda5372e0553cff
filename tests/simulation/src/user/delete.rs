//! A user that deletes tasks.

use optimus_core::TaskId;
use optimus_testkit::history::What;

use super::User;
use crate::queues::queue;

impl User {
    /// Deletes some tasks. If there are several, it also tries to delete one that does not exist.
    pub(crate) async fn delete_tasks(&self, tasks: &[(u64, TaskId)]) {
        for (task, _) in tasks {
            self.write(What::Delete { task: *task });
        }
        let unknown = (tasks.len() > 1).then(|| TaskId::new(queue()));
        let ids = tasks.iter().map(|(_, id)| id.clone()).chain(unknown);
        let answers = self.client.delete_all(ids).await;
        for ((task, _), answer) in tasks.iter().zip(answers) {
            match answer {
                Ok(_) => self.write(What::Deleted { task: *task }),
                Err(problem) => self.refused(*task, &problem),
            }
        }
    }
}
