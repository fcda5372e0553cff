//! The steps of a run, as numbers that get their meaning when the step is applied.

use std::ops::Range;

use fastrand::Rng;

/// One step. `queue` and `worker` are indexes; the other numbers choose among what exists.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Time passes, and the workers send heartbeats.
    Clock {
        ms: u64,
    },
    /// A worker dies with all that it holds, and its lease ends.
    Lose {
        queue: usize,
        worker: usize,
    },
    /// Tasks that share limits.
    Submit {
        queue: usize,
        limits: usize,
        cost: u32,
        count: usize,
        delay_ms: u64,
    },
    /// Calls that run together.
    Gathered {
        queue: usize,
        key: usize,
        count: usize,
    },
    /// A group with a task that waits for it. Its members are in the queues of the bits.
    Group {
        queue: usize,
        members: usize,
        places: u8,
        policy: usize,
        limits: usize,
        callback: Callback,
    },
    /// Adds members to a group that is not sealed yet, and seals it.
    Seal {
        group: usize,
        members: usize,
        places: u8,
    },
    /// Adds the first members again, as a client does that received no answer.
    Again {
        group: usize,
    },
    Disband {
        group: usize,
    },
    Claim {
        queue: usize,
        worker: usize,
        want: usize,
    },
    /// Collects for a run that a worker leads.
    Collect {
        queue: usize,
        worker: usize,
        want: usize,
    },
    Complete {
        queue: usize,
        worker: usize,
        picks: Vec<usize>,
    },
    Fail {
        queue: usize,
        worker: usize,
        picks: Vec<usize>,
        how: How,
    },
    Release {
        queue: usize,
        worker: usize,
        picks: Vec<usize>,
        snooze_ms: Option<u64>,
    },
    /// Reports again what was reported last.
    Repeat,
    Cancel {
        task: usize,
    },
    Requeue {
        task: usize,
    },
    Delete {
        task: usize,
    },
    /// Sets the limit of a gate; `None` removes what was set.
    Limit {
        queue: usize,
        gate: usize,
        limit: Option<usize>,
    },
    Pause {
        queue: usize,
        gate: usize,
    },
    Resume {
        queue: usize,
        gate: usize,
    },
    Acquire {
        queue: usize,
        gate: usize,
        lease_ms: u64,
    },
    GiveBack {
        queue: usize,
        loan: usize,
    },
    /// Relays carry all effects.
    Relay,
}

/// The task that waits for a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) queue: usize,
    pub(crate) policy: usize,
    pub(crate) delay_ms: u64,
}

/// How attempts fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Retry {
        ms: u64,
    },
    Dead,
    Cancelled,
    /// The task waits, and a gate of it shuts for that time.
    Shut {
        scope: usize,
        ms: u64,
    },
}

/// The longest wait that a step asks for.
const WAIT_MAX_MS: u64 = 4_000;

/// Makes the steps of a seed.
pub(crate) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| step(&mut random)).collect()
}

fn step(random: &mut Rng) -> Step {
    // Most steps are in one queue, so that they meet.
    let queue = usize::from(random.u8(..4) == 0);
    let worker = random.usize(..2);
    match random.u8(..100) {
        0..12 => Step::Clock { ms: clock(random) },
        12..14 => Step::Lose { queue, worker },
        14..36 => submit(random, queue),
        36..58 => Step::Claim { queue, worker, want: some(random, 1..9) },
        58..64 => Step::Collect { queue, worker, want: random.usize(..4) },
        64..73 => Step::Complete { queue, worker, picks: picks(random) },
        73..79 => Step::Fail { queue, worker, picks: picks(random), how: how(random) },
        79..82 => {
            let snooze_ms = random.bool().then(|| random.u64(..WAIT_MAX_MS));
            Step::Release { queue, worker, picks: picks(random), snooze_ms }
        }
        82 => Step::Repeat,
        83..88 => operate(random),
        88..95 => gate(random, queue),
        _ => Step::Relay,
    }
}

fn submit(random: &mut Rng, queue: usize) -> Step {
    let count = random.usize(1..5);
    match random.u8(..22) {
        0..9 => {
            let (delay_ms, limits) = (delay(random), random.usize(..8));
            let cost = if random.u8(..3) == 0 { random.u32(2..5) } else { 1 };
            Step::Submit { queue, limits, cost, count, delay_ms }
        }
        9..14 => Step::Gathered { queue, key: random.usize(..3), count },
        14..19 => {
            let (after, policy) = (random.usize(..2), random.usize(..3));
            let callback = Callback { queue: after, policy, delay_ms: delay(random) };
            let (members, places) = (random.usize(..4), random.u8(..));
            let (policy, limits) = (random.usize(..3), random.usize(..8));
            Step::Group { queue, members, places, policy, limits, callback }
        }
        19 => Step::Seal { group: random.usize(..99), members: count - 1, places: random.u8(..) },
        20 => Step::Again { group: random.usize(..99) },
        _ => Step::Disband { group: random.usize(..99) },
    }
}

fn delay(random: &mut Rng) -> u64 {
    if random.u8(..5) == 0 { random.u64(1..WAIT_MAX_MS) } else { 0 }
}

fn operate(random: &mut Rng) -> Step {
    let task = random.usize(..9_999);
    match random.u8(..5) {
        0..2 => Step::Cancel { task },
        2..4 => Step::Requeue { task },
        _ => Step::Delete { task },
    }
}

fn gate(random: &mut Rng, queue: usize) -> Step {
    let gate = random.usize(..4);
    match random.u8(..7) {
        0..2 => {
            let limit = (random.u8(..3) > 0).then(|| random.usize(..4));
            Step::Limit { queue, gate, limit }
        }
        2 => Step::Pause { queue, gate },
        3 => Step::Resume { queue, gate },
        4..6 => Step::Acquire { queue, gate, lease_ms: random.u64(1..9_000) },
        _ => Step::GiveBack { queue, loan: random.usize(..9) },
    }
}

/// Steps around the times that matter: a token, a run, a lease.
fn clock(random: &mut Rng) -> u64 {
    let times = [1, 99, 100, 101, 500, 999, 1_000, 1_999, 2_000, 2_001, 15_000];
    if random.bool() { random.u64(1..700) } else { times[random.usize(..times.len())] }
}

fn how(random: &mut Rng) -> How {
    let ms = random.u64(..WAIT_MAX_MS);
    match random.u8(..8) {
        0..3 => How::Retry { ms },
        3..6 => How::Dead,
        6 => How::Cancelled,
        _ => How::Shut { scope: random.usize(..3), ms },
    }
}

fn picks(random: &mut Rng) -> Vec<usize> {
    (0..random.usize(1..4)).map(|_| random.usize(..99)).collect()
}

/// Mostly a small number, sometimes many.
fn some(random: &mut Rng, few: Range<usize>) -> usize {
    if random.u8(..8) == 0 { 128 } else { random.usize(few) }
}
