//! Decides which queues a turn claims from, and how many tasks of each: [`Shares`].
//!
//! There are two rules. The queue that had the fewest tasks for its weight is served first
//! (start-time fair queueing), so starts are shared by weight in each second. While other queues
//! have work, no queue holds more than its share of the slots, rounded up, because otherwise a
//! queue of long tasks would take all slots. A queue of short tasks may hold as many tasks as it
//! ends in a twentieth of a second, because a call of many tasks costs Redis little more than a
//! call of one task.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use optimus_core::broker::BATCH_MAX;

use super::config::Order;

/// The most queues from which one turn claims. Each has one script call.
const TURN_QUEUES_MAX: usize = 24;
/// A queue with work for all of its share gets its tasks in at least this many lumps a second.
const LUMPS_PER_S: u64 = 20;
/// The price of one served task, before it is divided by the queue's weight.
const SCALE: u128 = 1 << 32;
/// A queue that holds its share of the slots is owed up to this many times the tasks that it holds.
const REFILLS: usize = 4;
/// How long a measurement counts in a queue's rate.
const MEMORY: Duration = Duration::from_millis(250);
/// The shortest time between two measurements.
const SAMPLE_MIN: Duration = Duration::from_millis(10);

/// The service that each queue has received and is owed.
#[derive(Debug)]
pub(crate) struct Shares {
    order: Order,
    queues: Vec<Share>,
    /// No queue with work was served less than this. A queue that had no work starts from here,
    /// because the service that it did not need is not owed to it.
    floor: u128,
}

#[derive(Debug, Default)]
struct Share {
    weight: u32,
    served: u128,
    had_no_work: bool,
    /// The number of tasks that claims without an answer ask for.
    asked: usize,
    granted: u64,
    rate: Rate,
}

/// The rate at which tasks of a queue end.
#[derive(Debug, Default)]
struct Rate {
    per_1000_s: u64,
    ended: u64,
    measured_at: Option<Instant>,
}

/// A queue that may have work, in one turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// The queue's position among the worker's queues.
    pub(crate) at: usize,
    /// The number of slots that its tasks use.
    pub(crate) running: usize,
}

/// An open queue during the division of a turn.
struct Place {
    open: Open,
    /// How many tasks the queue may get in addition to those that it holds.
    room: usize,
    /// How many tasks the queue gets each time that it is served.
    lump: usize,
    given: usize,
}

impl Rate {
    fn measure(&mut self, now: Instant, ended: u64) {
        let Some(measured_at) = self.measured_at else {
            (self.measured_at, self.ended) = (Some(now), ended);
            return;
        };
        let passed = now.saturating_duration_since(measured_at);
        if passed < SAMPLE_MIN {
            return;
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let since = ended.saturating_sub(self.ended).saturating_mul(1_000_000_000);
        let (part, whole) = (micros(passed.min(MEMORY)), micros(MEMORY));
        let sample = since / micros(passed);
        let kept = self.per_1000_s.saturating_mul(whole - part);
        self.per_1000_s = kept.saturating_add(sample.saturating_mul(part)) / whole;
        (self.measured_at, self.ended) = (Some(now), ended);
    }

    /// Returns how many tasks are one lump.
    fn lump(&self) -> usize {
        let lump = self.per_1000_s / 1_000 / LUMPS_PER_S;
        usize::try_from(lump).unwrap_or(BATCH_MAX).clamp(1, BATCH_MAX)
    }
}

impl Share {
    fn price(&self, tasks: usize) -> u128 {
        tasks as u128 * SCALE / u128::from(self.weight.max(1))
    }
}

impl Shares {
    pub(crate) fn new(order: Order, weights: impl Iterator<Item = u32>) -> Self {
        let share = |weight| Share { weight, had_no_work: true, ..Share::default() };
        Self { order, queues: weights.map(share).collect(), floor: 0 }
    }

    /// Divides up to `most` of the idle slots between the queues that may have work. Returns how
    /// many slots each of these queues gets. The caller passes the result of each claim to
    /// [`Shares::answered`].
    pub(crate) fn divide(
        &mut self,
        now: Instant,
        idle: usize,
        most: usize,
        open: &[Open],
    ) -> Vec<(usize, usize)> {
        let most = idle.min(most);
        if self.order == Order::Strict {
            let first = open.iter().map(|open| open.at).min().filter(|_| most > 0);
            if let Some(at) = first {
                self.queues[at].asked += most;
            }
            return first.map(|at| (at, most)).into_iter().collect();
        }
        for Open { at, running } in open {
            let share = &mut self.queues[*at];
            share.rate.measure(now, share.granted.saturating_sub(*running as u64));
        }
        // Otherwise a queue that fills all slots would count as one that needs no other slot.
        if idle == 0 {
            return Vec::new();
        }
        let mut places = self.places(idle, open);
        self.raise_floor(&places);
        self.serve(most, &mut places);
        let given = places.into_iter().filter(|place| place.given > 0);
        given.map(|place| (place.open.at, place.given)).collect()
    }

    /// Returns how much each queue may get. The slots of the open queues are shared only between
    /// these queues.
    fn places(&self, idle: usize, open: &[Open]) -> Vec<Place> {
        let held = |open: &Open| open.running + self.queues[open.at].asked;
        let weight = |open: &Open| self.queues[open.at].weight as usize;
        let pool = idle + open.iter().map(held).sum::<usize>();
        let weights = open.iter().map(weight).sum::<usize>().max(1);
        let place = |open: &Open| {
            let lump = self.queues[open.at].rate.lump();
            let share = pool.saturating_mul(weight(open)).div_ceil(weights).max(lump);
            Place { open: *open, room: share.saturating_sub(held(open)), lump, given: 0 }
        };
        open.iter().map(place).collect()
    }

    fn raise_floor(&mut self, places: &[Place]) {
        // What a queue got while it was alone is no debt to queues that begin later.
        let begins_at = |place: &Place| {
            let Share { served, had_no_work, .. } = self.queues[place.open.at];
            if had_no_work { served.max(self.floor) } else { served }
        };
        let least = places.iter().filter(|place| place.room > 0).map(begins_at).min();
        self.floor = self.floor.max(least.unwrap_or(0));
        for place in places {
            let share = &mut self.queues[place.open.at];
            let credit = match (share.had_no_work, place.room) {
                (true, _) => 0,
                // The queue's own tasks hold its share, not the tasks of others, so little is owed
                // to it. If nothing were owed, others would fill some of its slots when these
                // become idle.
                (false, 0) => {
                    let held = place.open.running + share.asked;
                    share.price(place.lump.max(REFILLS * held))
                }
                (false, _) => continue,
            };
            share.had_no_work = false;
            share.served = share.served.max(self.floor.saturating_sub(credit));
        }
    }

    /// Gives lump after lump to the queue that was served least. Of queues that were served
    /// equally, the one with the larger weight comes first.
    fn serve(&mut self, idle: usize, places: &mut [Place]) {
        let (mut left, mut chosen) = (idle, 0);
        let key = |share: &Share, nth| Reverse((share.served, Reverse(share.weight), nth));
        let with_room = places.iter().enumerate().filter(|(_, place)| place.room > 0);
        let mut next: BinaryHeap<_> =
            with_room.map(|(nth, place)| key(&self.queues[place.open.at], nth)).collect();
        while left > 0 {
            let Some(Reverse((_, _, nth))) = next.pop() else { break };
            let place = &mut places[nth];
            if place.given == 0 && chosen == TURN_QUEUES_MAX {
                continue;
            }
            chosen += usize::from(place.given == 0);
            let lump = place.lump.min(place.room).min(left);
            place.given += lump;
            place.room -= lump;
            left -= lump;
            let share = &mut self.queues[place.open.at];
            share.asked += lump;
            share.served += share.price(lump);
            if place.room > 0 {
                next.push(key(share, nth));
            }
        }
    }

    /// Notes that a claim for `asked` tasks was granted `granted` tasks. The rest does not count as
    /// served.
    pub(crate) fn answered(&mut self, at: usize, asked: usize, granted: usize) {
        let share = &mut self.queues[at];
        share.asked = share.asked.saturating_sub(asked);
        share.granted += granted as u64;
        let unused = share.price(asked.saturating_sub(granted));
        share.served = share.served.saturating_sub(unused);
    }

    /// Returns the number of tasks for which the queue's claims without an answer ask.
    #[cfg(test)]
    pub(crate) fn asked(&self, at: usize) -> usize {
        self.queues[at].asked
    }

    /// Notes that the queue had no work left.
    pub(crate) fn had_no_work(&mut self, at: usize) {
        self.queues[at].had_no_work = true;
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
