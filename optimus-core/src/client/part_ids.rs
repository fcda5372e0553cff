//! Ids that follow from the id of a group, so that the same submit finds what it has stored before.

use uuid::Uuid;

use crate::{
    flow::Stage,
    id::{QueueName, TaskId},
};

/// The bits of a uuid without its version, its variant and its time.
const OWN_BITS: u128 = (1 << 62) - 1;

/// Bits in which the ids of the steps beside a group differ from those of its members.
const BESIDE_BITS: u128 = 0xfff << 64;

/// How many steps of a member are looked for.
const PARTS_MAX: u32 = 1024;

/// Returns the id of a step before the last of a member, or of a group within it: a hash of the id
/// of the member, so that no other id is near it.
pub(super) fn part_id(member: &TaskId, queue: &QueueName, place: u32) -> TaskId {
    let bits = member.uuid().as_u128();
    // The finalizer of splitmix64.
    let (_, low) = member.uuid().as_u64_pair();
    let mut hash = low.wrapping_add(u64::from(place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let own = u128::from(hash) & OWN_BITS;
    TaskId::of(queue.clone(), Uuid::from_u128(bits & !OWN_BITS | own))
}

/// Returns whether the id is that of a step before the last of the member, or of a group within it.
pub(super) fn is_part(member: &TaskId, id: &TaskId) -> bool {
    (0..PARTS_MAX).any(|place| part_id(member, id.queue(), place) == *id)
}

/// Gives the steps of a flow ids that follow from the id that was given to one of its groups. Their
/// successes are remembered as long as the results of the group. Returns whether a group has such
/// an id.
pub(super) fn name_steps(stages: &mut [Stage<'_>]) -> bool {
    let given = stages.iter().find_map(|stage| match stage {
        Stage::Group(calls) => calls.id.clone().map(|id| (id, calls.keep)),
        Stage::Task(_) => None,
    });
    let Some((group, keep)) = given else { return false };
    let beside =
        TaskId::of(group.queue().clone(), Uuid::from_u128(group.uuid().as_u128() ^ BESIDE_BITS));
    for (place, stage) in (0_u32..).zip(stages) {
        match stage {
            Stage::Task(task) => {
                if let Ok(submission) = &mut task.made {
                    let ttl = &mut submission.options.after.outcome_ttl;
                    *ttl = Some(ttl.map_or(keep, |ttl| ttl.max(keep)));
                    if !submission.may_exist {
                        submission.id = part_id(&beside, submission.id.queue(), place);
                        submission.may_exist = true;
                    }
                }
            }
            Stage::Group(calls) => {
                calls.id.get_or_insert_with(|| part_id(&beside, group.queue(), place));
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_member_have_ids_of_their_own_which_show_the_member() {
        let queue = QueueName::new("q").unwrap();
        let member = TaskId::new(queue.clone());
        let parts: Vec<_> = (0..100).map(|place| part_id(&member, &queue, place)).collect();
        assert!(parts.iter().all(|part| is_part(&member, part)));
        let distinct: std::collections::HashSet<_> = parts.iter().collect();
        assert_eq!(distinct.len(), parts.len());
        assert!(!is_part(&member, &TaskId::new(queue)));
    }
}
