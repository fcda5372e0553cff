//! One random call about schedules: [`Step`].

use std::time::Duration;

use optimus_core::{Missed, Overlap};

const NAMES: [&str; 5] = ["a", "b", "c", "coded", "other"];
/// The names that the callers have in their code.
pub(super) const OF_CODE: [&str; 2] = ["coded", "other"];
/// The number of callers that look at schedules and take them further.
pub(super) const CALLERS: usize = 3;
const RELEASES: [&str; 2] = ["1.9.0", "1.10.0"];
const EVERY_MS: [u64; 3] = [7_000, 30_000, 100_000];

/// What a schedule is stored with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) every_ms: u64,
    pub(super) missed: Missed,
    pub(super) overlap: Overlap,
    /// Whether its tasks share a biz id with those of other schedules.
    pub(super) is_unique: bool,
}

/// How a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Succeeds,
    Dies,
    Retries,
}

/// A call with its arguments.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Put(&'static str, Option<&'static str>, Content),
    Pause(&'static str),
    Resume(&'static str),
    Remove(&'static str),
    /// A caller reads what is due, and keeps one of these.
    Look(usize, usize),
    /// A caller takes what it has kept one step further.
    Tick(usize),
    RunNow(&'static str),
    /// A worker claims a task, and reports how it ends.
    Work(Ends),
    /// One of the tasks is cancelled.
    Cancel(usize),
    /// The clock goes on.
    Wait(Duration),
    /// The clock is set back.
    Back(Duration),
}

impl Step {
    /// Draws a step.
    pub(super) fn drawn(chance: &mut fastrand::Rng) -> Self {
        let name = NAMES[chance.usize(..NAMES.len())];
        match chance.u8(..100) {
            0..=13 => Self::Put(name, release(chance, name), content(chance)),
            14..=15 => Self::Pause(name),
            16..=18 => Self::Resume(name),
            19 => Self::Remove(name),
            20..=39 => Self::Look(chance.usize(..CALLERS), chance.usize(..8)),
            40..=64 => Self::Tick(chance.usize(..CALLERS)),
            65..=67 => Self::RunNow(name),
            68..=76 => Self::Work(
                [Ends::Succeeds, Ends::Succeeds, Ends::Dies, Ends::Retries][chance.usize(..4)],
            ),
            77..=78 => Self::Cancel(chance.usize(..8)),
            79..=80 => Self::Back(Duration::from_millis(chance.u64(..60_000))),
            81..=82 => Self::Wait(Duration::from_millis(chance.u64(..1_000_000))),
            _ => Self::Wait(Duration::from_millis(chance.u64(..40_000))),
        }
    }
}

/// Draws where a schedule is from. Sometimes somebody uses a name of the code at run time, and the
/// other way round.
fn release(chance: &mut fastrand::Rng, name: &str) -> Option<&'static str> {
    let is_of_code = OF_CODE.contains(&name) != (chance.u8(..20) == 0);
    is_of_code.then(|| RELEASES[chance.usize(..RELEASES.len())])
}

fn content(chance: &mut fastrand::Rng) -> Content {
    let mut content = Content {
        every_ms: EVERY_MS[chance.usize(..EVERY_MS.len())],
        missed: [Missed::Skip, Missed::RunOnce, Missed::All][chance.usize(..3)],
        overlap: [Overlap::Skip, Overlap::All][chance.usize(..2)],
        is_unique: chance.u8(..4) == 0,
    };
    if content.missed == Missed::All {
        // With `Skip` it is refused.
        content.overlap = Overlap::All;
    }
    content
}
