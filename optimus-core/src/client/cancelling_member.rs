//! Finds the task whose failure has cancelled a group: [`Client::cancelled_by`].

use futures_util::future::BoxFuture;

use super::{Client, part_ids::is_part};
use crate::{Error, group::Member, group_details::LostMember, id::TaskId, state::TaskState};

/// How many steps of a member are looked at.
const STEPS_MAX: usize = 64;

impl Client {
    /// Returns the member that has cancelled a group by its failure, or the step of it that failed
    /// first; `None` if the group was cancelled otherwise, or nothing is known of the member.
    pub(super) fn cancelled_by<'a>(
        &'a self,
        group: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<LostMember>, Error>> {
        Box::pin(async move {
            let Some((position, queue)) = self.broker().cancelled_by(group).await? else {
                return Ok(None);
            };
            let member = Member::id(group, &queue, position);
            let (mut id, mut failed) = (member.clone(), None);
            for _ in 0..STEPS_MAX {
                let found = self.broker().inspect(&id).await?;
                match found.state {
                    // A step that was cancelled may have waited for another one that has failed.
                    state @ (TaskState::Dead | TaskState::Cancelled) => {
                        failed = Some(LostMember::of(group, position, id.clone(), found));
                        if state == TaskState::Dead {
                            break;
                        }
                    }
                    // It may be a group within the member.
                    TaskState::Forgotten if id != member => {
                        return Ok(self.cancelled_by(&id).await?.or(failed));
                    }
                    _ => break,
                }
                match self.former_of(&id).await? {
                    Some((former, _)) if is_part(&member, &former) => id = former,
                    _ => break,
                }
            }
            Ok(failed)
        })
    }
}
