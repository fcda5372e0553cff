//! Finds the task that has a biz id.

use super::Client;
use crate::{Error, Key, id::TaskId};

impl Client {
    /// Returns the task that has this biz id: a task that has not succeeded, or one that has, while
    /// its `biz_window` lasts. The id is enough to [`cancel`](Self::cancel) or inspect the task.
    ///
    /// ```no_run
    /// # use optimus_core::{Client, Error, Key};
    /// # async fn doc(client: Client) -> Result<(), Error> {
    /// if let Some(id) = client.find(&Key::new("default", "ship", "o-17")).await? {
    ///     client.cancel(&id).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no queue can have the name in the key; [`Error::is_unavailable`].
    pub async fn find(&self, key: &Key) -> Result<Option<TaskId>, Error> {
        let (queue, task, biz_id) = key.parts()?;
        Ok(self.0.broker.owner_of_biz_id(&queue, task, biz_id).await?)
    }
}
