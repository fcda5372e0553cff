//! Removes a group with its members, and the steps and groups within them.

use futures_util::future::BoxFuture;

use super::{Client, cancel_members::Part};
use crate::{Error, broker::BATCH_MAX, group::Member, id::TaskId};

impl Client {
    /// Cancels a group and removes what is stored of it. Members that run are asked to stop, and
    /// stay as cancelled tasks.
    pub(super) fn remove_group<'a>(
        &'a self,
        group: &'a TaskId,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let handle = self.group::<()>(group.clone());
            let Some(progress) = self.broker().group(group).await? else { return Ok(()) };
            handle.cancel().await?;
            let has_parts = self.broker().group_has_parts(group).await?;
            let indexes: Vec<u32> = (0..progress.total).collect();
            for queue in &progress.queues {
                for indexes in indexes.chunks(BATCH_MAX) {
                    let ids = indexes.iter().map(|index| Member::id(group, queue, *index));
                    let mut ids: Vec<TaskId> = ids.collect();
                    if has_parts {
                        let parts = self.parts_of(&ids).await?;
                        ids.extend(parts);
                    }
                    // What runs or has succeeded is not removed.
                    drop(self.delete_all(ids).await);
                }
            }
            self.broker().forget_group(group).await?;
            Ok(())
        })
    }

    /// Returns the steps before the last ones of members, after the groups within them are removed.
    async fn parts_of(&self, members: &[TaskId]) -> Result<Vec<TaskId>, Error> {
        let mut found = Vec::new();
        let mut waiting: Vec<Part> = members.iter().map(Part::of_member).collect();
        while !waiting.is_empty() {
            waiting = self.parts_before(&waiting).await?;
            found.extend(waiting.iter().map(|part| part.id.clone()));
        }
        for id in &found {
            self.remove_group(id).await?;
        }
        Ok(found)
    }
}
