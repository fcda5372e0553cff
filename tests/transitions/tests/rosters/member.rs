//! One member of the roster, with the life of its process.

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{Changes, Granted, Post, broker::Holding};

use crate::{
    acts::{LEASE, LEASE_MS},
    rosters::RosterMember,
};

/// How long the work of a post takes to end, in ms.
const DRAIN_MS: u64 = 1_000;

/// A member and its process.
pub(crate) struct Process {
    pub(crate) member: RosterMember,
    pub(crate) next_at: u64,
    pub(crate) frozen_until: u64,
    /// Posts that drain, by when their work has ended.
    pub(crate) draining: BTreeMap<Post, (u64, u64)>,
}

impl Process {
    pub(crate) fn new(number: u32, now: u64, asked: u16) -> Self {
        let mut member = RosterMember::new(&format!("w{number:04}"), asked);
        member.quiet = LEASE;
        Self { member, next_at: now, frozen_until: 0, draining: BTreeMap::new() }
    }

    /// Returns what the process works on at this time. A frozen process does nothing, and one that
    /// thaws first ends what it may not go on with.
    pub(crate) fn works_on(&self, now: u64) -> Vec<Granted> {
        let good_until = self.member.held.good_until();
        let is_good = Duration::from_millis(now) < good_until && self.frozen_until <= now;
        if is_good { self.member.held.shown() } else { Vec::new() }
    }

    /// Ends the work of posts when their time has come; returns those to give back.
    pub(crate) fn check(&mut self, now: u64) -> Vec<Granted> {
        for (post, _) in self.member.held.lapse(Duration::from_millis(now)) {
            self.draining.remove(&post);
        }
        let over: Vec<Granted> = self
            .draining
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(post, (fence, _))| (*post, *fence))
            .collect();
        for (post, _) in &over {
            self.draining.remove(post);
        }
        over.into_iter().filter(|granted| self.member.held.ended(*granted)).collect()
    }

    /// Takes in an answer, as a worker does. Returns what it begins, and what it must give back at
    /// once.
    pub(crate) fn answered(&mut self, now: u64, beat: u64, holding: &Holding) -> Changes {
        let at = Duration::from_millis(now);
        let changes = self.member.held.answered((at, at), LEASE, holding.heard, &holding.posts);
        for (post, fence) in &changes.drain {
            self.draining.insert(*post, (*fence, now + DRAIN_MS));
        }
        for (post, _) in &changes.stop {
            self.draining.remove(post);
        }
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap();
        let mut wait = beat;
        if let Some(next) = holding.next_expiry {
            wait = wait.min(millis(next) + beat % 200);
        }
        if let Some(soon) = holding.soon {
            wait = wait.min(millis(soon));
        }
        if self.draining.values().any(|(_, until)| *until > now) {
            wait = wait.min(DRAIN_MS);
        }
        self.next_at = now + wait.max(20);
        changes
    }
}

/// Returns how long the process waits until its next heartbeat.
pub(crate) fn beat(random: &mut fastrand::Rng) -> u64 {
    LEASE_MS / 3 * random.u64(900..=1_000) / 1_000
}
