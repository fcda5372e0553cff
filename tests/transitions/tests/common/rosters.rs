//! Members of a roster, as a worker is one: they show what they hold, and do what the answer says.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use optimus_core::{
    Changes, Granted, HeldPosts, Post, RosterName, WorkerId,
    broker::{BrokerError, Hold, Holding},
};

use crate::{acts::LEASE, bench::Bench};

/// A member with the state that a worker keeps.
#[derive(Debug)]
pub(crate) struct RosterMember {
    pub(crate) id: WorkerId,
    pub(crate) lease: Duration,
    pub(crate) asked: u16,
    pub(crate) quiet: Duration,
    pub(crate) is_leaving: bool,
    pub(crate) held: HeldPosts,
    /// The number of its last heartbeat.
    pub(crate) beats: AtomicU64,
}

impl RosterMember {
    /// Makes a member of a roster of so many posts. It does not wait in an unknown roster.
    pub(crate) fn new(id: &str, asked: u16) -> Self {
        Self {
            id: WorkerId::from_stored(id),
            lease: LEASE,
            asked,
            quiet: Duration::ZERO,
            is_leaving: false,
            held: HeldPosts::default(),
            beats: AtomicU64::new(0),
        }
    }

    /// Returns the numbers of the posts that it holds.
    pub(crate) fn holds(&self) -> Vec<u16> {
        self.held.shown().iter().map(|(post, _)| post.index).collect()
    }

    /// Returns the fence under which it holds a post.
    pub(crate) fn fence(&self, index: u16) -> u64 {
        let shown = self.held.shown();
        shown.iter().find(|(post, _)| post.index == index).expect("it holds the post").1
    }

    /// Returns the post of that number, which it holds.
    pub(crate) fn granted(&self, index: u16) -> Granted {
        let shown = self.held.shown();
        *shown.iter().find(|(post, _)| post.index == index).expect("it holds the post")
    }
}

impl Bench {
    /// Returns the roster whose keys are in the slot of the queue.
    pub(crate) fn roster(&self) -> RosterName {
        RosterName::within(&self.queue)
    }

    /// Sends the heartbeat of a member, without its doing anything.
    pub(crate) async fn ask(&self, at: u64, member: &RosterMember) -> Result<Holding, BrokerError> {
        let shown = member.held.shown();
        let hold = Hold {
            worker: &member.id,
            lease: member.lease,
            asked: member.asked,
            heard: member.held.heard(),
            shown: &shown,
            quiet: member.quiet,
            is_leaving: member.is_leaving,
            description: "{}",
            number: member.beats.fetch_add(1, Ordering::Relaxed) + 1,
        };
        self.at(at).hold(&self.roster(), &hold).await
    }

    /// Sends the heartbeat of a member, which does at once what the answer says. What it must give
    /// back is in the changes, and it still holds it.
    pub(crate) async fn hold(&self, at: u64, member: &mut RosterMember) -> Changes {
        let holding = self.ask(at, member).await.expect("the heartbeat is not refused");
        let now = Duration::from_millis(at);
        member.held.answered((now, now), member.lease, holding.heard, &holding.posts)
    }

    /// Sends the heartbeat of a member, and gives back at once what the answer says.
    pub(crate) async fn hold_and_yield(&self, at: u64, member: &mut RosterMember) -> Changes {
        let changes = self.hold(at, member).await;
        let back = [changes.drain.clone(), changes.back.clone()].concat();
        self.give(at, member, &back).await;
        changes
    }

    /// Gives posts of a member back.
    pub(crate) async fn give(&self, at: u64, member: &mut RosterMember, posts: &[Granted]) {
        for granted in posts {
            member.held.ended(*granted);
        }
        let given = self.at(at).yield_posts(&self.roster(), &member.id, posts).await;
        given.expect("to give back is not refused");
    }

    /// Returns who holds a post, and the fence.
    pub(crate) async fn holder_of(&self, post: Post) -> Option<(String, u64)> {
        let seen = self.now().roster(&self.roster()).await.expect("a roster can be read");
        seen.holders.get(&post).map(|(worker, fence, _)| (worker.to_string(), *fence))
    }
}
