//! Cancels all tasks of a lane.

use super::{Client, operate::of_lane};
use crate::{
    Error, LaneCancelled,
    broker::{BATCH_MAX, BrokerError, Cancelled},
    id::{QueueName, TaskId},
};

impl Client {
    /// Cancels the tasks of a lane: those that wait in it, from the first to the last, then those
    /// that have its permits. A task that runs is asked to stop, as [`cancel`](Self::cancel) does.
    /// A dead task that blocks its lane stays dead, and continues to block it.
    ///
    /// Each request cancels up to 128 tasks, so other callers of the queue are not delayed. A task
    /// that joins the lane during the call may be cancelled, too. A task that is not yet in its
    /// lane, because it is not due or waits for a prerequisite, is not cancelled.
    ///
    /// ```no_run
    /// # async fn doc(client: optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let done = client.cancel_lane("default", "user-7").await?;
    /// println!("{} cancelled, {} asked to stop", done.cancelled, done.asked_to_stop);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no queue can have this name; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`]. Tasks may be cancelled then. A repeated call cancels the
    /// others.
    pub async fn cancel_lane(
        &self,
        queue: impl AsRef<str>,
        key: impl AsRef<str>,
    ) -> Result<LaneCancelled, Error> {
        let (queue, key) = (QueueName::new(queue)?, key.as_ref());
        let done = self.cancel_in_lane(&queue, key).await;
        done.map_err(|problem| of_lane(&queue, key, problem))
    }

    async fn cancel_in_lane(
        &self,
        queue: &QueueName,
        key: &str,
    ) -> Result<LaneCancelled, BrokerError> {
        let broker = &self.0.broker;
        let mut all = LaneCancelled::default();
        // Tasks that wait are first, so no permit passes to one that is cancelled next.
        let last = broker.last_place_in_lane(queue, key).await?;
        loop {
            let waiting = broker.waiting_in_lane(queue, key, last, BATCH_MAX).await?;
            let done = self.cancel_and_count(queue, &waiting, &mut all).await?;
            if done == 0 {
                break;
            }
        }
        for holders in broker.holders_of_lane(queue, key).await?.chunks(BATCH_MAX) {
            self.cancel_and_count(queue, holders, &mut all).await?;
        }
        Ok(all)
    }

    /// Returns how many tasks have left the lane.
    async fn cancel_and_count(
        &self,
        queue: &QueueName,
        ids: &[TaskId],
        all: &mut LaneCancelled,
    ) -> Result<usize, BrokerError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let asked: Vec<&TaskId> = ids.iter().collect();
        let mut left = 0;
        let (done, posted) = self.0.broker.cancel_many(queue, &asked).await?;
        if posted {
            self.carry(queue).await;
        }
        for done in done {
            match done {
                Cancelled::Done => all.cancelled += 1,
                Cancelled::Requested => all.asked_to_stop += 1,
                Cancelled::Ended(_) => {}
            }
            left += usize::from(done == Cancelled::Done);
        }
        Ok(left)
    }
}
