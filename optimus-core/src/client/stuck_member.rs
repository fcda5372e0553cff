//! Finds the step for whose requeue a member waits: [`StuckMembers`]. Only a member that is a flow
//! can wait in this way, and its group does not know of it.

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use super::{Client, part_ids::is_part};
use crate::{
    Error,
    after::PrerequisiteFailure,
    broker::GROUP_PAGE_MAX,
    group::{GroupProgress, Member, MemberResult},
    group_details::LostMember,
    id::TaskId,
    state::TaskState,
};

/// The first and the longest time between two looks.
const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// How many members one look reads. Those that have ended are not read again, so in the end only
/// the stuck ones are left.
const MEMBERS_MAX: usize = 64;

/// What a caller that waits for a group knows of its members that are flows.
pub(super) struct StuckMembers {
    has_flows: Option<bool>,
    look_at: Instant,
    pause: Duration,
    /// The position from which the next look reads.
    next: u32,
}

impl StuckMembers {
    pub(super) fn new() -> Self {
        let look_at = Instant::now() + LOOK_FIRST;
        Self { has_flows: None, look_at, pause: LOOK_FIRST, next: 0 }
    }

    /// Returns the error of a step within a member that waits for its requeue, if it is time for a
    /// look, and the look finds one.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        group: &TaskId,
        progress: &GroupProgress,
    ) -> Result<Option<Error>, Error> {
        if Instant::now() < self.look_at || self.has_flows == Some(false) {
            return Ok(None);
        }
        self.pause = (self.pause * 2).min(LOOK_MAX);
        self.look_at = Instant::now() + self.pause;
        if self.has_flows.is_none() {
            self.has_flows = Some(client.broker().group_has_parts(group).await?);
        }
        if self.has_flows == Some(false) || progress.total == 0 {
            return Ok(None);
        }
        let first = if self.next < progress.total { self.next } else { 0 };
        let (found, next) = client.failed_step(group, progress, first).await?;
        self.next = next;
        Ok(found)
    }
}

impl Client {
    /// Looks at some members from a position on. Returns the error of a failed step, and from where
    /// to look next.
    fn failed_step<'a>(
        &'a self,
        group: &'a TaskId,
        progress: &'a GroupProgress,
        first: u32,
    ) -> BoxFuture<'a, Result<(Option<Error>, u32), Error>> {
        Box::pin(async move {
            let count = GROUP_PAGE_MAX.min(progress.total - first);
            let ends = self.broker().group_results(group, first, count).await?;
            let is_pending = |(_, end): &(u32, MemberResult)| *end == MemberResult::Pending;
            let pending: Vec<_> = (first..).zip(ends).filter(is_pending).collect();
            let next = pending.get(MEMBERS_MAX).map_or(first + count, |(index, _)| *index);
            let some = pending.iter().take(MEMBERS_MAX).flat_map(|(index, _)| {
                progress.queues.iter().map(|queue| (*index, Member::id(group, queue, *index)))
            });
            let looks = some.map(|(index, member)| self.failed_before(group, index, member));
            for found in join_all(looks).await {
                if let Some(problem) = found? {
                    return Ok((Some(problem), next));
                }
            }
            Ok((None, next))
        })
    }

    /// Follows what a member waits for, within the member. Returns the error of a step that must be
    /// requeued.
    async fn failed_before(
        &self,
        group: &TaskId,
        index: u32,
        member: TaskId,
    ) -> Result<Option<Error>, Error> {
        let (mut id, mut policy) = (member.clone(), PrerequisiteFailure::Run);
        loop {
            let found = self.broker().inspect(&id).await?;
            match found.state {
                // With another policy, the step after it does not wait for a requeue.
                TaskState::Dead | TaskState::Cancelled if policy == PrerequisiteFailure::Wait => {
                    return Ok(Some(Error::member_lost(LostMember::of(group, index, id, found))));
                }
                TaskState::Blocked => {}
                // It may be a group.
                TaskState::Forgotten if id != member => {
                    if let Some(problem) = self.failed_within(&id).await? {
                        return Ok(Some(problem));
                    }
                }
                _ => return Ok(None),
            }
            match self.former_of(&id).await? {
                Some((former, of_waiter)) if is_part(&member, &former) => {
                    (id, policy) = (former, of_waiter);
                }
                _ => return Ok(None),
            }
        }
    }

    /// Returns the error of a member of a group within a member.
    async fn failed_within(&self, group: &TaskId) -> Result<Option<Error>, Error> {
        let Some(progress) = self.broker().group(group).await? else { return Ok(None) };
        if progress.ended.is_some() || progress.total == 0 {
            return Ok(None);
        }
        if progress.lost > 0 {
            return Ok(self.group::<()>(group.clone()).lost(&progress).await);
        }
        Ok(self.failed_step(group, &progress, 0).await?.0)
    }
}
