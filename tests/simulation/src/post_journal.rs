//! Records who works on which post of a roster, from when to when: [`PostJournal`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use optimus_core::Shard;

/// The stays at all posts. Of each post there is at most one worker at any time, and nobody works
/// on posts of two generations at the same time. After a failover that loses grants, and after the
/// clock was set forward, two may for a lease: the store does not know the grant or ends it, and
/// gives the post to another one, before the holder hears of that. But each later grant has a
/// larger fence, so a database that compares fences refuses the earlier holder. The rounds of the
/// two take turns, so the fence of a round that begins may be smaller than that of one before.
#[derive(Debug, Default)]
pub struct PostJournal(Mutex<Posts>);

#[derive(Debug, Default)]
struct Posts {
    stays: Vec<Stay>,
    /// The positions of those that last.
    open: Vec<usize>,
    /// The largest fence of each number of a post under which anybody has worked.
    fences: BTreeMap<u16, u64>,
    /// Until when two may work on one post, in ns.
    excused_until: u64,
    excused: u64,
}

/// The work of one process on one post under one fence, for one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The process.
    pub process: u32,
    /// The generation of the post.
    pub generation: u64,
    /// The number of the post.
    pub index: u16,
    /// The fence.
    pub fence: u64,
    /// When the round began, in ns.
    pub from: u64,
    /// When it ended; none while it lasts.
    pub to: Option<u64>,
}

/// What a round may rely on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The position of the stay.
    pub(crate) place: usize,
    /// The broken promise.
    pub(crate) wrong: Option<String>,
}

impl PostJournal {
    fn posts(&self) -> MutexGuard<'_, Posts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a round begins.
    pub(crate) fn begin(&self, at: u64, process: u32, shard: &Shard) -> Begun {
        let (generation, index, fence) = (shard.generation(), shard.index(), shard.fence());
        self.posts().begin(Stay { process, generation, index, fence, from: at, to: None })
    }

    /// Records that a round has ended.
    pub(crate) fn end(&self, at: u64, place: usize) {
        self.posts().end(at, place);
    }

    /// Records that a process was killed: it works on nothing any more.
    pub(crate) fn end_all_of(&self, at: u64, process: u32) {
        let mut posts = self.posts();
        let places: Vec<usize> =
            posts.open.iter().copied().filter(|at| posts.stays[*at].process == process).collect();
        for place in places {
            posts.end(at, place);
        }
    }

    /// Allows two workers on one post until that time: the store has lost grants, or has ended
    /// leases too early.
    pub(crate) fn excuse_until(&self, until: u64) {
        let mut posts = self.posts();
        posts.excused_until = posts.excused_until.max(until);
    }

    /// Returns all stays, in the order of their begin.
    pub fn stays(&self) -> Vec<Stay> {
        self.posts().stays.clone()
    }

    /// Returns the stays that last.
    pub fn open(&self) -> Vec<Stay> {
        let posts = self.posts();
        posts.open.iter().map(|place| posts.stays[*place]).collect()
    }

    /// Returns how often two worked on one post, or on posts of two generations, because of a
    /// failover or of a clock.
    pub fn excused(&self) -> u64 {
        self.posts().excused
    }
}

impl Posts {
    fn begin(&mut self, stay: Stay) -> Begun {
        let last = self.fences.get(&stay.index).copied();
        self.fences.insert(stay.index, last.unwrap_or(0).max(stay.fence));
        let other = self
            .open
            .iter()
            .map(|place| self.stays[*place])
            .find(|other| other.index == stay.index || other.generation != stay.generation);
        let later = last.filter(|last| *last > stay.fence);
        let mut wrong = None;
        if later.is_some() || other.is_some() {
            if stay.from < self.excused_until {
                self.excused += 1;
            } else if let Some(last) = later {
                let index = stay.index;
                wrong = Some(format!("the fence of shard {index} goes back from {last}: {stay:?}"));
            } else if let Some(other) = other {
                wrong = Some(format!("{stay:?} begins while there is {other:?}"));
            }
        }
        self.stays.push(stay);
        let place = self.stays.len() - 1;
        self.open.push(place);
        Begun { place, wrong }
    }

    fn end(&mut self, at: u64, place: usize) {
        self.open.retain(|open| *open != place);
        self.stays[place].to.get_or_insert(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(process: u32, generation: u64, index: u16, fence: u64) -> Stay {
        Stay { process, generation, index, fence, from: 5, to: None }
    }

    #[test]
    fn two_workers_of_one_post_or_of_two_generations_are_found() {
        let mut posts = Posts::default();
        let first = posts.begin(stay(1, 3, 0, 7));
        assert_eq!(first, Begun { place: 0, wrong: None });
        assert!(posts.begin(stay(2, 3, 1, 8)).wrong.is_none(), "another post");
        assert!(posts.begin(stay(2, 3, 0, 9)).wrong.is_some(), "the same post");
        assert!(posts.begin(stay(2, 4, 5, 9)).wrong.is_some(), "another generation");
        for place in 0..4 {
            posts.end(6, place);
        }
        assert!(posts.begin(stay(1, 3, 0, 8)).wrong.is_some(), "an earlier fence");
        posts.excused_until = 6;
        assert!(posts.begin(stay(2, 3, 0, 10)).wrong.is_none(), "after a failover");
        assert!(posts.begin(stay(1, 3, 0, 9)).wrong.is_none(), "one that has not heard of it");
        assert_eq!(posts.excused, 2);
        (4..7).for_each(|place| posts.end(6, place));
        posts.excused_until = 0;
        assert!(posts.begin(stay(1, 3, 0, 9)).wrong.is_some(), "the later fence counts");
    }
}
