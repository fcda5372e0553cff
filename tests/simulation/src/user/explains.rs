//! A user that asks why tasks do not run.

use optimus_core::Error;

use super::User;

impl User {
    /// Asks about a task and about its queue. Only a store that is not available may refuse that.
    pub(super) async fn explain(&mut self) {
        let inspector = self.client.inspector();
        if let Some((task, id)) = self.some_task()
            && let Err(problem) = inspector.explain(&id).await
        {
            self.expect_outage(&problem, &format!("of task {task}"));
        }
        let queue = self.queues.pick(&mut self.random);
        if let Err(problem) = inspector.explain_queue(queue).await {
            self.expect_outage(&problem, &format!("of queue {queue}"));
        }
    }

    fn expect_outage(&self, problem: &Error, of: &str) {
        // The injected failure of a command refuses a read, too.
        if !problem.is_unavailable() && !problem.is_rejected() {
            self.network.complain(format!("an explanation {of} fails: {problem}"));
        }
    }
}
