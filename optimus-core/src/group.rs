//! Groups of tasks that end together: [`Member`], and what is known of a group.
//!
//! A group is named by a [`TaskId`] that no task has: its home queue counts the members, and tasks
//! wait for the group as for a task. See `lua/enroll.lua`.

use std::fmt;

use uuid::Uuid;

use crate::{
    after::PrerequisiteFailure,
    id::{QueueName, TaskId},
    state::TaskState,
};

/// The bits of an id in which members of a group differ. The others have the version, the variant
/// and the time of the group.
const MEMBER_BITS: u128 = (1 << 62) - 1;

/// The place of a task in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The group: its home queue, and an id that no task has.
    pub group: TaskId,
    /// The position in the group, from 0.
    pub index: u32,
    /// What the group does if the task ends without success. A group that waits for a task that is
    /// deleted is cancelled, because nobody can requeue that task.
    pub on_failure: PrerequisiteFailure,
}

impl Member {
    /// Returns the id of a member. It depends only on the group and the position, so a repeated
    /// submit finds the members that are stored, and a cancel needs no list of them.
    pub fn id(group: &TaskId, queue: &QueueName, index: u32) -> TaskId {
        let bits = group.uuid().as_u128();
        let own = (bits & MEMBER_BITS).wrapping_add(u128::from(index) + 1) & MEMBER_BITS;
        TaskId::of(queue.clone(), Uuid::from_u128(bits & !MEMBER_BITS | own))
    }

    /// Returns the text under which Redis stores it.
    pub(crate) fn stored(&self) -> String {
        format!("{}/{}:{}", self.group.queue(), self.group.stored(), self.index)
    }

    /// Reads the text of [`stored`](Self::stored).
    pub(crate) fn from_stored(text: &str, on_failure: PrerequisiteFailure) -> Option<Self> {
        let (queue, rest) = text.split_once('/')?;
        let (group, index) = rest.split_once(':')?;
        let group = TaskId::from_stored(QueueName::new(queue).ok()?, group).ok()?;
        Some(Self { group, index: index.parse().ok()?, on_failure })
    }
}

/// How far a group is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupProgress {
    /// How many members it has.
    pub total: u32,
    /// Whether its creator has added all of its members. Others can add some until it ends.
    pub is_sealed: bool,
    /// How many members have ended for the group, with or without success.
    pub done: u32,
    /// How many of these are Dead.
    pub failed: u32,
    /// How many of these are Cancelled, or were deleted. The counts stay as they were when the
    /// group itself was cancelled: the members that are cancelled with it are in none of them.
    pub cancelled: u32,
    /// How many members have ended without success, and the group waits until they are requeued
    /// and have ended again. A requeue does not change the count.
    pub lost: u32,
    /// How many of such members were requeued and have not ended again. Only an
    /// [`Inspector`](crate::Inspector) that explains a group looks for this, and only it finds all
    /// or none: then [`lost`](Self::lost) is 0. Otherwise this is 0.
    pub requeued: u32,
    /// `Success` once all members have ended, `Cancelled` if it was cancelled; `None` before.
    pub ended: Option<TaskState>,
    /// What a member that ends as Dead or Cancelled does to the group, as its submitter said it.
    pub on_member_failure: PrerequisiteFailure,
    /// The queues of its members.
    pub queues: Vec<QueueName>,
}

impl fmt::Display for GroupProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, done, failed, cancelled, lost, requeued, is_sealed, ended, .. } = self;
        if *ended == Some(TaskState::Cancelled) {
            return write!(f, "it was cancelled when {done} of {total} members had ended");
        }
        write!(f, "{done} of {total} members have ended")?;
        if failed + cancelled > 0 {
            write!(f, ", {failed} of them as dead and {cancelled} as cancelled")?;
        }
        if *lost > 0 {
            let (verb, rest) = if *lost == 1 {
                ("was", "requeue it if it still is")
            } else {
                ("were", "requeue those that still are")
            };
            write!(f, "; {lost} {verb} dead or cancelled: {rest}")?;
        }
        if *requeued > 0 {
            let [was, is, has] =
                if *requeued == 1 { ["was", "is", "has"] } else { ["were", "are", "have"] };
            write!(
                f,
                "; {requeued} that {was} dead or cancelled {is} requeued, and {has} not ended yet"
            )?;
        }
        if !is_sealed {
            f.write_str("; its submit has not added all members")?;
        }
        Ok(())
    }
}

/// What a member of a group has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberResult {
    /// The member has not ended, or the group is not known any more.
    Pending,
    /// The member has succeeded, and returned this JSON.
    Value(Vec<u8>),
    /// The member has ended in this state, and counts.
    Failed(TaskState),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_an_id_of_its_own_with_the_time_of_the_group() {
        let queue = QueueName::new("q").unwrap();
        let group = TaskId::new(queue.clone());
        let ids: Vec<_> = (0..1_000).map(|index| Member::id(&group, &queue, index)).collect();
        assert!(ids.iter().all(|id| id.made_ms() == group.made_ms() && *id != group));
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(Member::id(&group, &queue, 7), ids[7]);
    }

    #[test]
    fn a_member_is_read_back() {
        let group = TaskId::new(QueueName::new("a.b").unwrap());
        let member = Member { group, index: u32::MAX, on_failure: PrerequisiteFailure::Run };
        let stored = member.stored();
        assert_eq!(Member::from_stored(&stored, PrerequisiteFailure::Run), Some(member));
        for text in ["", "a/b", "q/0123456789012345678901:x", "q:1"] {
            assert_eq!(Member::from_stored(text, PrerequisiteFailure::Wait), None, "{text}");
        }
    }
}
