//! What queues keep of the tasks that succeeded or died.

use super::{Client, operate::of_queue};
use crate::{Error, HistoryOptions, QueueAnswer, id::QueueName};

impl Client {
    /// Lets a queue keep a line for each task that succeeds or dies from now on, which
    /// [`Inspector::history`](crate::Inspector::history) reads. Workers of this release write them;
    /// what ends on a worker of an earlier one is missing. The options replace those before. They
    /// stay until they are changed, and the queue is not removed meanwhile.
    ///
    /// A queue without a history pays nothing for it. With one, a success costs Redis about 2 µs of
    /// CPU and 80 bytes more.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{Client, HistoryOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::connect("memory://history").await?;
    /// client.keep_history("mail", &HistoryOptions::days(180)).await?;
    /// let kept = client.inspector().history_details("mail").await?;
    /// assert_eq!(kept.options, Some(HistoryOptions::days(180)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options that can't be kept, or a name that no queue can have;
    /// [`Error::is_unavailable`]; [`Error::is_unknown_outcome`] if the request was sent and not
    /// answered, which is safe to repeat. These are the errors of all methods here.
    pub async fn keep_history(
        &self,
        queue: impl AsRef<str>,
        options: &HistoryOptions,
    ) -> Result<QueueAnswer, Error> {
        let queue = &QueueName::new(queue)?;
        options.check()?;
        self.retain(queue, Some(options)).await
    }

    /// Lets a queue keep no more lines. Those that it has stay for their time. This prevails over
    /// what code declares until [`keep_history`](Self::keep_history) or
    /// [`remove_history`](Self::remove_history); until then, the queue stays listed.
    ///
    /// # Errors
    /// As for [`keep_history`](Self::keep_history).
    pub async fn stop_history(&self, queue: impl AsRef<str>) -> Result<QueueAnswer, Error> {
        let queue = &QueueName::new(queue)?;
        let failed = |problem| of_queue("keep the history of", queue, problem);
        let had_one = self.0.broker.retain_no_more(queue).await.map_err(failed)?;
        Ok(if had_one { QueueAnswer::Known } else { QueueAnswer::Unknown })
    }

    /// Removes the history of a queue, and lets it keep no more lines.
    ///
    /// # Errors
    /// As for [`keep_history`](Self::keep_history).
    pub async fn remove_history(&self, queue: impl AsRef<str>) -> Result<QueueAnswer, Error> {
        self.retain(&QueueName::new(queue)?, None).await
    }

    async fn retain(
        &self,
        queue: &QueueName,
        options: Option<&HistoryOptions>,
    ) -> Result<QueueAnswer, Error> {
        let stored = options.map(HistoryOptions::stored);
        let wanted = stored.as_ref().map(|(days, bytes, tasks)| (*days, *bytes, tasks.as_str()));
        let failed = |problem| of_queue("keep the history of", queue, problem);
        let had_one = self.0.broker.retain(queue, wanted).await.map_err(failed)?;
        if !had_one && wanted.is_some() {
            self.list_paused(queue).await.map_err(failed)?;
        }
        Ok(if had_one { QueueAnswer::Known } else { QueueAnswer::Unknown })
    }
}
