//! The reference: what has ended, and when by the clock of the store: [`Ended`].

use std::collections::BTreeMap;

use optimus_core::TaskId;
use optimus_simulation::{tasks::Kind, world::World};
use optimus_testkit::history::{How, What};

use super::shift::{Known, STEP_MS_MAX, Shifts};

const NS_A_MS: u64 = 1_000_000;
/// The longest time between the end of a handler and the report of it.
const REPORTED_MS: u64 = 1_000;
/// The longest time until a worker has added its counts to the statistics.
const COUNTED_MS: u64 = 61_000;
/// Longer than a shift takes.
const SHIFT_MS_MAX: u64 = 1_200_000;
/// Longer than an attempt takes.
const ATTEMPT_MS: u64 = 5_000;

/// How an attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Success,
    Death,
    Cancel,
    Retry,
    Snooze,
}

/// One end, with the times of the store at which it may be filed.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) id: TaskId,
    pub(crate) queue: usize,
    pub(crate) task: &'static str,
    pub(crate) way: Way,
    /// When its report arrived, in ms, at the earliest and the latest.
    pub(crate) reported: (u64, u64),
    /// When the statistics have counted it.
    pub(crate) counted: (u64, u64),
    /// Whether the worker has surely added it to the statistics.
    pub(crate) is_counted: bool,
}

/// What has harmed a run, by the times of the journal in ms.
struct Harms {
    /// When the clock of the store was set, and its offset from then on.
    offsets: Vec<(u64, i64)>,
    killed: BTreeMap<u32, u64>,
}

/// An event of an attempt.
#[derive(Clone, Copy)]
struct End {
    at: u64,
    process: u32,
    how: How,
}

impl Ended {
    /// Returns all ends. `origin` is a time of the journal in ns, and the time of the store in ms.
    pub(crate) fn all(world: &World, shifts: &Shifts, origin: (u64, u64)) -> Vec<Self> {
        let at_ms = |ns: u64| origin.1 + (ns - origin.0) / NS_A_MS;
        let mut harms = Harms { offsets: vec![(0, 0)], killed: BTreeMap::new() };
        let mut ends: BTreeMap<u64, Vec<End>> = BTreeMap::new();
        let mut begun: BTreeMap<u64, u64> = BTreeMap::new();
        for event in world.network.journal.events() {
            match event.what {
                What::ClockSet { by_ms, .. } => {
                    let before = harms.offsets.last().unwrap().1;
                    harms.offsets.push((at_ms(event.at), before + by_ms));
                }
                What::Killed { victim } => drop(harms.killed.insert(victim, at_ms(event.at))),
                What::Begin { task, .. } => drop(begun.insert(task, at_ms(event.at))),
                What::End { task, how, .. } => {
                    let end = End { at: at_ms(event.at), process: event.pid, how };
                    ends.entry(task).or_default().push(end);
                }
                _ => {}
            }
        }
        let mut all = Vec::new();
        for (number, known) in &shifts.known {
            if known.task == "poison" {
                let range = (begun[number], at_ms(known.over_ns));
                let times = harms.store_times(range);
                all.push(Self::of(known, Way::Death, times, (times, false)));
                continue;
            }
            if known.kind == Kind::Hangs && !harms.killed.is_empty() {
                // Another worker may have ended it for one that was killed.
                let over = at_ms(known.over_ns);
                let times = harms.store_times((over - SHIFT_MS_MAX, over));
                all.push(Self::of(known, Way::Cancel, times, (times, false)));
                continue;
            }
            let requeued = known.requeued_ns.iter().map(|ns| at_ms(*ns)).collect::<Vec<_>>();
            for life in lives(ends.get(number).map_or(&[], Vec::as_slice), &requeued) {
                all.extend(harms.ends_of(known, life));
            }
        }
        all
    }

    fn of(
        known: &Known,
        way: Way,
        reported: (u64, u64),
        (counted, is_counted): ((u64, u64), bool),
    ) -> Self {
        let (id, queue, task) = (known.id.clone(), known.queue, known.task);
        Self { id, queue, task, way, reported, counted, is_counted }
    }
}

/// Divides the ends of a task by the times of its requeues.
fn lives<'a>(ends: &'a [End], requeued: &[u64]) -> Vec<&'a [End]> {
    let mut rest = ends;
    let mut lives = Vec::new();
    for at in requeued {
        let (before, after) = rest.split_at(rest.partition_point(|end| end.at < *at));
        lives.push(before);
        rest = after;
    }
    lives.push(rest);
    lives
}

impl Harms {
    /// Returns the earliest and the latest time of the store within a span of true time.
    fn store_times(&self, (from, until): (u64, u64)) -> (u64, u64) {
        let shifted = |at: u64, offset: i64| at.saturating_add_signed(offset);
        let (mut first, mut last) = (u64::MAX, 0);
        for (place, (since, offset)) in self.offsets.iter().enumerate() {
            let end = self.offsets.get(place + 1).map_or(u64::MAX, |(at, _)| *at);
            if *since <= until && end >= from {
                first = first.min(shifted(from.max(*since), *offset));
                last = last.max(shifted(until.min(end), *offset));
            }
        }
        (first, last)
    }

    fn is_set_within(&self, from: u64, until: u64) -> bool {
        self.offsets.iter().any(|(at, _)| (from..=until).contains(at))
    }

    fn is_killed_within(&self, end: &End, ms: u64) -> bool {
        self.killed.get(&end.process).is_some_and(|at| *at <= end.at + ms)
    }

    /// Returns the ends of one life of a task. Its last attempt has ended it, and earlier ones
    /// whose report was lost or refused did not.
    fn ends_of(&self, known: &Known, life: &[End]) -> Vec<Ended> {
        let mut all = Vec::new();
        for (place, end) in life.iter().enumerate() {
            let is_last = place + 1 == life.len();
            let way = match (end.how, known.kind) {
                (How::Ok, _) => Way::Success,
                (How::Failed, Kind::Fatal | Kind::Tells) => Way::Death,
                (How::Failed, Kind::GivesUp) | (How::Stopped, Kind::Hangs) => Way::Cancel,
                (How::Failed, Kind::Snoozes) => Way::Snooze,
                (How::Failed, _) => Way::Retry,
                (How::Stopped, _) => continue,
            };
            let is_end = matches!(way, Way::Success | Way::Death | Way::Cancel);
            if is_end && !is_last {
                continue;
            }
            let is_doubtful =
                self.is_set_within(end.at.saturating_sub(ATTEMPT_MS), end.at + REPORTED_MS);
            let mut reported = self.store_times((end.at, end.at + REPORTED_MS));
            if self.offsets.len() > 1 {
                // A success is filed later, when the clock may have been set back.
                reported.0 -= STEP_MS_MAX;
                reported.1 =
                    reported.1.max(self.store_times((end.at.saturating_sub(ATTEMPT_MS), end.at)).1);
            }
            let counted = self.store_times((end.at, end.at + COUNTED_MS));
            let is_counted = !is_doubtful && !self.is_killed_within(end, COUNTED_MS);
            all.push(Ended::of(known, way, reported, (counted, is_counted)));
        }
        all
    }
}
