//! One step of a random run, as numbers that find their meaning when it is their turn: so that a
//! run from which steps were taken out is still a run.

use std::time::Duration;

use optimus_core::broker::{Give, Verdict};
use proptest::{collection::vec, prelude::*};

/// One step. `queue`, `worker`, `client` and `task` are indexes into what there is by then.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The clock moves, back if this is negative.
    Clock {
        ms: i64,
    },
    /// The clock moves to about the end of a worker's lease, while another watches and then reaps
    /// so many.
    Outlive {
        queue: u8,
        worker: u8,
        ms: i64,
        reap: u8,
    },
    /// Calls of this client that never arrived come before it.
    Submit {
        queue: u8,
        client: u8,
        lost: u8,
        plans: Vec<Plan>,
    },
    Claim {
        queue: u8,
        worker: u8,
        want: u8,
    },
    /// The last claim once more, as after a lost answer.
    ClaimAgain {
        queue: u8,
        worker: u8,
    },
    Complete {
        queue: u8,
        worker: u8,
        picks: Vec<Pick>,
    },
    Fail {
        queue: u8,
        worker: u8,
        picks: Vec<(Pick, Verdict)>,
    },
    Release {
        queue: u8,
        worker: u8,
        picks: Vec<(Pick, Give)>,
    },
    Register {
        queue: u8,
        worker: u8,
        lease_ms: u64,
    },
    Renew {
        queue: u8,
        worker: u8,
        lease_ms: u64,
    },
    Reap {
        queue: u8,
        worker: u8,
        limit: u8,
    },
    Leave {
        queue: u8,
        worker: u8,
    },
    Cancel {
        queue: u8,
        task: u16,
        aim: Aim,
    },
    Requeue {
        queue: u8,
        task: u16,
        aim: Aim,
    },
    Pause {
        queue: u8,
        paused: bool,
    },
    Purge {
        queue: u8,
        keep: usize,
        age_ms: u64,
    },
    Await {
        queue: u8,
        task: u16,
        client: u8,
    },
    Inspect {
        queue: u8,
        task: u16,
    },
    Look {
        queue: u8,
    },
    /// The call before once more.
    Again,
    /// Any earlier call once more.
    Replay {
        sent: u16,
    },
    ReadMail {
        queue: u8,
        client: u8,
    },
    AnswerBell {
        queue: u8,
        pass_on: bool,
    },
    HearStop {
        queue: u8,
    },
}

/// One task of a submit.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// To run so many ms from now, or at that time by the client's reckoning.
    pub(crate) due: Option<(i64, bool)>,
    pub(crate) priority: i8,
    pub(crate) biz: Option<u8>,
    pub(crate) window: bool,
    pub(crate) expires: bool,
}

/// What is special about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Its definition lets its first loss bury it.
    Fragile,
    /// Its call does.
    AtMostOnce,
    /// Its payload is kept beside its record.
    Large,
}

/// Which hold is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    /// One that the worker has.
    Held(u8),
    /// One that it ever had.
    Ever(u8),
    /// One that it has, under a wrong claim number or fence.
    Forged(u8, bool),
}

/// At which tasks a cancel or requeue aims.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    Ended,
    Live,
    Any,
}

/// So many steps.
pub(crate) fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), count)
}

fn step() -> impl Strategy<Value = Step> {
    // Nearly everything happens in one queue; what leaks into the other shows all the same.
    let queue = || prop_oneof![5 => Just(0_u8), 1 => Just(1_u8)];
    let worker = || 0..3_u8;
    let client = || prop_oneof![3 => Just(0_u8), 1 => Just(1_u8), 1 => Just(2_u8)];
    let keep = || prop_oneof![0..4_usize, Just(10_000)];
    let lease_ms = || prop::sample::select(vec![15_000_u64, 15_000, 4_000]);
    prop_oneof![
        12 => clock(),
        7 => (queue(), worker(), -1..3_i64, prop_oneof![0..3_u8, Just(128)])
            .prop_map(|(queue, worker, ms, reap)| Step::Outlive { queue, worker, ms, reap }),
        16 => (queue(), client(), lost(), vec(plan(), 1..5))
            .prop_map(|(queue, client, lost, plans)| Step::Submit { queue, client, lost, plans }),
        16 => (queue(), worker(), 0..7_u8)
            .prop_map(|(queue, worker, want)| Step::Claim { queue, worker, want }),
        4 => (queue(), worker()).prop_map(|(queue, worker)| Step::ClaimAgain { queue, worker }),
        7 => (queue(), worker(), vec(pick(), 1..4))
            .prop_map(|(queue, worker, picks)| Step::Complete { queue, worker, picks }),
        7 => (queue(), worker(), vec((pick(), verdict()), 1..4))
            .prop_map(|(queue, worker, picks)| Step::Fail { queue, worker, picks }),
        5 => (queue(), worker(), vec((pick(), give()), 1..4))
            .prop_map(|(queue, worker, picks)| Step::Release { queue, worker, picks }),
        4 => (queue(), worker(), lease_ms())
            .prop_map(|(queue, worker, lease_ms)| Step::Register { queue, worker, lease_ms }),
        6 => (queue(), worker(), lease_ms())
            .prop_map(|(queue, worker, lease_ms)| Step::Renew { queue, worker, lease_ms }),
        6 => (queue(), worker(), prop_oneof![1..4_u8, Just(128)])
            .prop_map(|(queue, worker, limit)| Step::Reap { queue, worker, limit }),
        1 => (queue(), worker()).prop_map(|(queue, worker)| Step::Leave { queue, worker }),
        7 => (queue(), any::<u16>(), aim(1, 4))
            .prop_map(|(queue, task, aim)| Step::Cancel { queue, task, aim }),
        7 => (queue(), any::<u16>(), aim(8, 1))
            .prop_map(|(queue, task, aim)| Step::Requeue { queue, task, aim }),
        3 => (queue(), prop::bool::weighted(0.25))
            .prop_map(|(queue, paused)| Step::Pause { queue, paused }),
        3 => (queue(), keep(), prop::sample::select(vec![60_000, 0_u64]))
            .prop_map(|(queue, keep, age_ms)| Step::Purge { queue, keep, age_ms }),
        5 => (queue(), any::<u16>(), 0..3_u8)
            .prop_map(|(queue, task, client)| Step::Await { queue, task, client }),
        3 => (queue(), any::<u16>()).prop_map(|(queue, task)| Step::Inspect { queue, task }),
        2 => queue().prop_map(|queue| Step::Look { queue }),
        6 => Just(Step::Again),
        10 => any::<u16>().prop_map(|sent| Step::Replay { sent }),
        4 => (queue(), 0..3_u8).prop_map(|(queue, client)| Step::ReadMail { queue, client }),
        6 => (queue(), prop::bool::weighted(0.2))
            .prop_map(|(queue, pass_on)| Step::AnswerBell { queue, pass_on }),
        3 => queue().prop_map(|queue| Step::HearStop { queue }),
    ]
}

/// Steps around what matters: a millisecond, a lease and its half, a step of priority, a window.
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

/// The call after 15 that never arrived takes the slot of the one before them.
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
    (kind, due, priority, biz, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(kind, due, priority, biz, window, expires)| Plan {
            kind,
            due,
            priority,
            biz,
            window,
            expires,
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => wait().prop_map(Verdict::Retry),
        2 => Just(Verdict::Dead),
        1 => Just(Verdict::Cancelled),
    ]
}

fn give() -> impl Strategy<Value = Give> {
    prop_oneof![
        3 => Just(Give::Head),
        1 => wait().prop_map(Give::Snooze),
        1 => wait().prop_map(Give::Misfit),
    ]
}

fn wait() -> impl Strategy<Value = Duration> {
    (0..6_000_u64).prop_map(Duration::from_millis)
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        8 => any::<u8>().prop_map(Pick::Held),
        2 => any::<u8>().prop_map(Pick::Ever),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(index, fence)| Pick::Forged(index, fence)),
    ]
}

fn aim(ended: u32, live: u32) -> impl Strategy<Value = Aim> {
    prop_oneof![ended => Just(Aim::Ended), live => Just(Aim::Live), 1 => Just(Aim::Any)]
}
