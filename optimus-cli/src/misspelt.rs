//! Names of queues that are probably misspelt: [`Session::known_if_empty`].

use optimus_core::{Gate, QueueName};

use crate::{failure::Failure, session::Session};

impl Session<'_> {
    /// Refuses queues that were never used, if nothing was found in them.
    pub(crate) async fn known_if_empty<T>(
        &self,
        found: &[T],
        queues: &[QueueName],
    ) -> Result<(), Failure> {
        if found.is_empty() { self.known(queues).await } else { Ok(()) }
    }

    /// Refuses queues to which no task was submitted, that no worker serves, and that nobody has
    /// paused, limited or given a history.
    pub(crate) async fn known(&self, queues: &[QueueName]) -> Result<(), Failure> {
        if queues.is_empty() {
            return Ok(());
        }
        let known = self.inspector().queues().await?;
        for queue in queues.iter().filter(|queue| !known.contains(queue)) {
            let is_set = self.client.gate(queue, Gate::Queue).get().await?.is_some();
            let history = self.inspector().history_details(queue).await?;
            if !is_set && history.options.is_none() {
                return Err(Failure::not_found(format!(
                    "no task was ever in queue {queue}, and no worker served it: is its name \
                     misspelt? `optimus queue list` has the names"
                )));
            }
        }
        Ok(())
    }
}
