//! The random choice of steps: which ones, how often, and with which values.

use std::{ops::Range, time::Duration};

use optimus_core::broker::{FailureOutcome, Give, Keep};
use proptest::{collection::vec, prelude::*};

use crate::step::{Aim, Kind, Pick, Plan, Step};

/// The size of each kind of step.
#[derive(Debug)]
pub(crate) struct Width {
    /// The number of tasks of a submit.
    tasks: Range<usize>,
    /// The number of tasks that a claim asks for.
    want: Range<u8>,
    /// The number of reports of a call.
    reports: Range<usize>,
    /// The maximum number of tasks that a reap takes, if not 128.
    reaped: Range<u8>,
    /// The number of tasks of a cancel or a delete.
    cancelled: Range<usize>,
    /// How often a failing run is repeated with fewer steps.
    pub(crate) tries_max: u32,
}

/// Small steps: a failure needs few tasks.
pub(crate) const NARROW: Width = Width {
    tasks: 1..5,
    want: 0..7,
    reports: 1..4,
    reaped: 1..4,
    cancelled: 1..4,
    tries_max: 2_000,
};

/// Beyond the limits of the scripts: a failure needs many tasks.
pub(crate) const WIDE: Width = Width {
    tasks: 40..260,
    want: 50..200,
    reports: 40..129,
    reaped: 50..200,
    cancelled: 1..129,
    tries_max: 400,
};

/// Returns a strategy for this many steps.
pub(crate) fn steps(count: usize, width: &Width) -> impl Strategy<Value = Vec<Step>> {
    vec(step(width), count)
}

fn step(width: &Width) -> impl Strategy<Value = Step> {
    // Nearly all steps are in one queue. The few others are enough to find a call that changes the
    // wrong queue.
    let queue = || prop_oneof![5 => Just(0_u8), 1 => Just(1_u8)];
    // There are more than eight workers, so that leases become long. Most steps use a few of them,
    // so that these interact.
    let worker = || prop_oneof![4 => 0..3_u8, 1 => 3..12_u8];
    let client = || prop_oneof![3 => Just(0_u8), 1 => Just(1_u8), 1 => Just(2_u8)];
    let minute = || prop::sample::select(vec![Duration::from_secs(60), Duration::ZERO]);
    // The limits are the bytes of small tasks, of large tasks, and of all tasks.
    let bytes = prop_oneof![1 => 0..1_000_u64, 1 => 17_000..60_000_u64, 2 => Just(1 << 40)];
    let keep = (prop_oneof![0..4_usize, Just(10_000)], minute(), bytes, minute())
        .prop_map(|(tasks, recent, bytes, age)| Keep { tasks, recent, bytes, age });
    let lease_ms = || prop::sample::select(vec![15_000_u64, 15_000, 4_000]);
    prop_oneof![
        12 => clock(),
        7 => (queue(), worker(), -1..3_i64, prop_oneof![Just(0), width.reaped.clone(), Just(128)])
            .prop_map(|(queue, worker, ms, reap)| Step::Outlive { queue, worker, ms, reap }),
        1 => (queue(), worker(), 1..14_u8)
            .prop_map(|(queue, worker, rounds)| Step::FailAll { queue, worker, rounds }),
        16 => (queue(), client(), lost(), vec(plan(), width.tasks.clone()))
            .prop_map(|(queue, client, lost, plans)| Step::Submit { queue, client, lost, plans }),
        16 => (queue(), worker(), width.want.clone())
            .prop_map(|(queue, worker, want)| Step::Claim { queue, worker, want }),
        4 => (queue(), worker()).prop_map(|(queue, worker)| Step::ClaimAgain { queue, worker }),
        7 => (queue(), worker(), vec(pick(), width.reports.clone()))
            .prop_map(|(queue, worker, picks)| Step::Complete { queue, worker, picks }),
        7 => (queue(), worker(), vec((pick(), outcome()), width.reports.clone()))
            .prop_map(|(queue, worker, picks)| Step::Fail { queue, worker, picks }),
        5 => (queue(), worker(), vec((pick(), give()), width.reports.clone()))
            .prop_map(|(queue, worker, picks)| Step::Release { queue, worker, picks }),
        4 => (queue(), worker(), lease_ms())
            .prop_map(|(queue, worker, lease_ms)| Step::Register { queue, worker, lease_ms }),
        6 => (queue(), worker(), lease_ms())
            .prop_map(|(queue, worker, lease_ms)| Step::Renew { queue, worker, lease_ms }),
        6 => (queue(), worker(), prop_oneof![width.reaped.clone(), Just(128)])
            .prop_map(|(queue, worker, limit)| Step::Reap { queue, worker, limit }),
        1 => (queue(), worker()).prop_map(|(queue, worker)| Step::Leave { queue, worker }),
        7 => (queue(), vec(any::<u16>(), width.cancelled.clone()), aim(1, 4))
            .prop_map(|(queue, tasks, aim)| Step::Cancel { queue, tasks, aim }),
        7 => (queue(), any::<u16>(), aim(8, 1))
            .prop_map(|(queue, task, aim)| Step::Requeue { queue, task, aim }),
        3 => (queue(), prop::bool::weighted(0.25))
            .prop_map(|(queue, paused)| Step::Pause { queue, paused }),
        2 => (queue(), 0..4_u8, prop_oneof![3 => Just(0_u16), 5 => 1..5_u16, 1 => Just(300)])
            .prop_map(|(queue, lane, width)| Step::Resize { queue, lane, width }),
        2 => (queue(), vec(any::<u16>(), width.cancelled.clone()), aim(1, 1))
            .prop_map(|(queue, tasks, aim)| Step::Delete { queue, tasks, aim }),
        4 => (queue(), keep).prop_map(|(queue, keep)| Step::Purge { queue, keep }),
        2 => (queue(), prop::sample::select(vec![60_000, 0_u64]))
            .prop_map(|(queue, idle_ms)| Step::Retire { queue, idle_ms }),
        1 => queue().prop_map(|queue| Step::Abandon { queue }),
        5 => (queue(), any::<u16>(), 0..3_u8)
            .prop_map(|(queue, task, client)| Step::Await { queue, task, client }),
        3 => (queue(), any::<u16>()).prop_map(|(queue, task)| Step::Inspect { queue, task }),
        2 => queue().prop_map(|queue| Step::Read { queue }),
        8 => queue().prop_map(|queue| Step::Relay { queue }),
        2 => queue().prop_map(|queue| Step::Reask { queue }),
        2 => prop::bool::weighted(0.3).prop_map(|full| Step::Fill { full }),
        6 => Just(Step::Again),
        10 => any::<u16>().prop_map(|sent| Step::Replay { sent }),
        4 => (queue(), 0..3_u8).prop_map(|(queue, client)| Step::ReadCompletions { queue, client }),
        6 => (queue(), prop::bool::weighted(0.2))
            .prop_map(|(queue, pass_on)| Step::AnswerWakeup { queue, pass_on }),
        3 => queue().prop_map(|queue| Step::ReadStop { queue }),
    ]
}

/// Steps around the times that matter: a millisecond, a lease and its half, a step of priority, a
/// window.
fn clock() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => 1..1_000_i64,
        20 => prop::sample::select(vec![1, 1_499, 1_500, 2_000, 2_001, 3_999, 4_000, 7_500]),
        4 => prop::sample::select(vec![7_501, 14_999, 15_000, 59_999, 60_000]),
        2 => prop::sample::select(vec![600_000, 3_600_000]),
        4 => -5_000..0_i64,
        1 => Just(25 * 3_600_000),
    ]
    .prop_map(|ms| Step::Clock { ms })
}

/// If 15 calls never arrived, the next one takes the slot of the call before them.
fn lost() -> impl Strategy<Value = u8> {
    prop_oneof![12 => Just(0_u8), 1 => 1..20_u8, 1 => Just(15)]
}

fn plan() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![
        30 => Just(Kind::Plain),
        3 => Just(Kind::Fragile),
        3 => Just(Kind::AtMostOnce),
        1 => Just(Kind::Large),
    ];
    let due = prop_oneof![
        5 => Just(None),
        2 => (0..20_000_i64, any::<bool>()).prop_map(Some),
        1 => (-5_000..0_i64, Just(true)).prop_map(Some),
    ];
    let priority = prop_oneof![4 => Just(0_i8), 2 => -2..3_i8, 1 => Just(100)];
    let biz = prop::option::weighted(0.4, 0..4_u8);
    let lane = prop::option::weighted(0.3, 0..4_u8);
    let give_up = prop::option::weighted(0.2, 1..20_000_u64);
    let after = (any::<u16>(), prop::option::weighted(0.3, any::<u16>()), 0..3_u8, give_up);
    let after = prop::option::weighted(0.2, after);
    let again = prop::option::weighted(0.06, any::<u16>());
    let rarely = || prop::bool::weighted(0.1);
    (kind, due, priority, biz, (lane, after), any::<bool>(), rarely(), again, rarely()).prop_map(
        |(kind, due, priority, biz, (lane, after), window, expires, again, foreign)| Plan {
            kind,
            due,
            priority,
            biz,
            lane,
            after,
            window,
            expires,
            again,
            foreign,
        },
    )
}

fn outcome() -> impl Strategy<Value = FailureOutcome> {
    prop_oneof![
        4 => wait().prop_map(FailureOutcome::Retry),
        2 => Just(FailureOutcome::Dead),
        1 => Just(FailureOutcome::Cancelled),
    ]
}

fn give() -> impl Strategy<Value = Give> {
    prop_oneof![
        3 => Just(Give::Head),
        1 => Just(Give::Interrupted),
        1 => wait().prop_map(Give::Snooze),
        1 => wait().prop_map(Give::Misfit),
    ]
}

fn wait() -> impl Strategy<Value = Duration> {
    (0..6_000_u64).prop_map(Duration::from_millis)
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        8 => any::<u16>().prop_map(Pick::Held),
        2 => any::<u16>().prop_map(Pick::Ever),
        1 => (any::<u16>(), any::<bool>()).prop_map(|(index, fence)| Pick::Forged(index, fence)),
    ]
}

fn aim(ended: u32, live: u32) -> impl Strategy<Value = Aim> {
    prop_oneof![ended => Just(Aim::Ended), live => Just(Aim::Live), 1 => Just(Aim::Any)]
}
