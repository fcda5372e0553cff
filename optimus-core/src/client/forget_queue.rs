//! Removes an unused queue from the list.

use std::time::Duration;

use super::{Client, operate::of_queue};
use crate::{Error, ForgetAnswer, id::QueueName};

impl Client {
    /// Removes a queue that nobody uses, such as one whose name was misspelt, so that
    /// [`Inspector::queues`](crate::Inspector::queues) no longer lists it. Workers do the same once
    /// a queue was unused for a day. Nothing is done to a queue that is used, and a queue that is
    /// used again comes back by itself.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{Client, ForgetAnswer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::connect("memory://forget").await?;
    /// client.pause("mial").await?;
    /// assert_eq!(client.forget_queue("mial").await?, ForgetAnswer::InUse);
    /// client.resume("mial").await?;
    /// assert_eq!(client.forget_queue("mial").await?, ForgetAnswer::Forgotten);
    /// assert!(client.inspector().queues().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no queue can have this name; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`] if the request was sent and not answered, which is safe to
    /// repeat.
    pub async fn forget_queue(&self, queue: impl AsRef<str>) -> Result<ForgetAnswer, Error> {
        let queue = &QueueName::new(queue)?;
        let is_gone = self.0.broker.retire(queue, Duration::ZERO).await;
        let is_gone = is_gone.map_err(|problem| of_queue("forget", queue, problem))?;
        Ok(if is_gone { ForgetAnswer::Forgotten } else { ForgetAnswer::InUse })
    }
}
