//! A random history of one roster, and what must hold after each step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use optimus_core::{Granted, Post};

use crate::{
    acts::LEASE_MS,
    bench::Bench,
    dump::Dump,
    member::{Process, beat},
};

const STEPS: u32 = 900;
/// The roster must be balanced when nothing has happened for this long.
const QUIET_AFTER_MS: u64 = 60_000;
const COUNTS: [u16; 4] = [5, 8, 10, 16];
const MEMBERS_MAX: usize = 6;

/// How many of 1,000 steps have these faults, in addition to the usual ones.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) recounts: u32,
    pub(crate) flushes: u32,
    pub(crate) failovers: u32,
}

pub(crate) struct History {
    bench: Bench,
    seed: u64,
    faults: Faults,
    random: fastrand::Rng,
    now: u64,
    members: Vec<Process>,
    born: u32,
    last_fault_at: u64,
    lost_until: u64,
    snapshots: VecDeque<Dump>,
    /// The largest fence of each number of a post that a member has begun to work under.
    fences: BTreeMap<Post, u64>,
    pub(crate) quiet_looks: u32,
}

impl History {
    pub(crate) fn new(bench: Bench, seed: u64, faults: Faults) -> Self {
        let mut history = Self {
            bench,
            seed,
            faults,
            random: fastrand::Rng::with_seed(seed),
            now: 0,
            members: Vec::new(),
            born: 0,
            last_fault_at: 0,
            lost_until: 0,
            snapshots: VecDeque::new(),
            fences: BTreeMap::new(),
            quiet_looks: 0,
        };
        (0..3).for_each(|_| history.join());
        history
    }

    pub(crate) async fn run(&mut self) {
        for _ in 0..STEPS {
            self.now += [100, 200, 400][self.random.usize(0..3)];
            self.fault().await;
            for at in 0..self.members.len() {
                self.act(at).await;
            }
            self.check().await;
        }
        // Then nothing happens any more.
        self.last_fault_at = self.last_fault_at.max(self.thawed_at());
        while self.now < self.last_fault_at + QUIET_AFTER_MS + 5_000 {
            self.now += 400;
            for at in 0..self.members.len() {
                self.act(at).await;
            }
            self.check().await;
        }
    }

    fn join(&mut self) {
        self.born += 1;
        self.members.push(Process::new(self.born, self.now, 10));
        self.last_fault_at = self.now;
    }

    fn thawed_at(&self) -> u64 {
        self.members.iter().map(|process| process.frozen_until).max().unwrap_or(0)
    }

    async fn fault(&mut self) {
        let draw = self.random.u32(0..1_000);
        let Faults { recounts, flushes, failovers } = self.faults;
        let from = |first: u32, many: u32| first..first + many;
        if draw < 4 && self.members.len() < MEMBERS_MAX {
            self.join();
        } else if from(4, 3).contains(&draw) && self.members.len() > 1 {
            let killed = self.random.usize(0..self.members.len());
            self.members.remove(killed);
            self.last_fault_at = self.now;
        } else if from(7, 3).contains(&draw) {
            let frozen = self.random.usize(0..self.members.len());
            let time = [3_000, 12_000, 40_000][self.random.usize(0..3)];
            self.members[frozen].frozen_until = self.now + time;
            self.last_fault_at = self.last_fault_at.max(self.now + time);
        } else if draw == 10 {
            self.now += [8_000, 40_000][self.random.usize(0..2)];
            self.last_fault_at = self.now;
        } else if from(20, recounts).contains(&draw) {
            let count = COUNTS[self.random.usize(0..COUNTS.len())];
            // A roster that was flushed has no count yet.
            drop(self.bench.at(self.now).recount(&self.bench.roster(), count).await);
            self.last_fault_at = self.now;
        } else if from(30, flushes).contains(&draw) {
            self.bench.restore(&Dump::new()).await;
            self.last_fault_at = self.now;
        } else if from(40, failovers).contains(&draw) {
            let back = self.random.usize(0..8.min(self.snapshots.len()).max(1));
            if let Some(old) = self.snapshots.iter().rev().nth(back).cloned() {
                self.bench.restore(&old).await;
            }
            self.last_fault_at = self.now;
            self.lost_until = self.now + LEASE_MS;
        }
        if failovers > 0 {
            self.snapshots.push_back(self.bench.dump().await);
            if self.snapshots.len() > 8 {
                self.snapshots.pop_front();
            }
        }
    }

    /// Lets a process do what it must do now.
    async fn act(&mut self, at: usize) {
        let now = self.now;
        if self.members[at].frozen_until > now {
            return;
        }
        let back = self.members[at].check(now);
        self.give(at, &back).await;
        if self.members[at].next_at > now {
            return;
        }
        let answer = self.bench.ask(now, &self.members[at].member).await;
        let holding = answer.expect("the heartbeat is not refused");
        if self.random.u32(0..100) == 0 {
            // The answer is lost.
            self.members[at].next_at = now + 250;
            self.last_fault_at = self.last_fault_at.max(now);
            return;
        }
        let beat = beat(&mut self.random);
        let changes = self.members[at].answered(now, beat, &holding);
        for (post, fence) in &changes.start {
            let before = self.fences.insert(*post, *fence);
            let before = before.unwrap_or(0);
            assert!(before < *fence, "seed {}: the fence of {post} goes back", self.seed);
        }
        self.give(at, &changes.back).await;
    }

    async fn give(&self, at: usize, back: &[Granted]) {
        if !back.is_empty() {
            let (roster, id) = (self.bench.roster(), &self.members[at].member.id);
            let given = self.bench.at(self.now).yield_posts(&roster, id, back).await;
            given.expect("to give back is not refused");
        }
    }

    async fn check(&mut self) {
        let (mut holders, mut generations) = (BTreeMap::new(), BTreeSet::new());
        for process in &self.members {
            for (post, fence) in process.works_on(self.now) {
                generations.insert(post.generation);
                let other = holders.insert(post, (process.member.id.clone(), fence));
                let is_lost = self.now < self.lost_until;
                assert!(
                    other.is_none() || is_lost,
                    "seed {} at {}: {post} is held by {} and {other:?}",
                    self.seed,
                    self.now,
                    process.member.id
                );
            }
        }
        assert!(
            generations.len() < 2 || self.now < self.lost_until,
            "seed {} at {}: posts of {generations:?} are held",
            self.seed,
            self.now
        );
        if self.now < self.last_fault_at + QUIET_AFTER_MS || self.thawed_at() > self.now {
            return;
        }
        self.quiet_looks += 1;
        let loads: Vec<usize> =
            self.members.iter().map(|process| process.works_on(self.now).len()).collect();
        let count = self.members[0].member.held.heard().count;
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        let is_balanced = loads.iter().sum::<usize>() == usize::from(count) && most - least <= 1;
        assert!(
            is_balanced,
            "seed {} at {}: {count} posts, held by {loads:?}: {:?}",
            self.seed,
            self.now,
            self.bench.dump().await
        );
        assert_eq!(self.bench.fsck().await, [""; 0], "seed {}", self.seed);
    }
}
