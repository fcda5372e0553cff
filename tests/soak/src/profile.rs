//! The kinds of runs: their faults, how frequent these are, and when a run ends: [`Profile`].

use std::time::Duration;

use crate::agent::Load;
use crate::nemesis::Act;

/// A kind of run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The workers' lease.
    pub(crate) lease: Duration,
    pub(crate) workers: usize,
    pub(crate) slots: usize,
    pub(crate) clients: usize,
    /// The submits per second, over all clients.
    pub(crate) per_s: u64,
    /// The run ends after this many submitted tasks. If none is set, it ends after the
    /// disturbances.
    pub(crate) tasks: Option<u64>,
    /// The time of the disturbances. If none is set, they end when all acts are done.
    pub(crate) time: Option<Duration>,
    /// The acts on processes, and the acts on Redis and its connections. Both run at the same time.
    pub(crate) plans: [Plan; 2],
    pub(crate) sync: Sync,
    pub(crate) load: Load,
}

/// The acts of one nemesis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The acts, each with the number of times that it occurs before the order starts again.
    pub(crate) acts: &'static [(u32, Act)],
    /// The number of acts. If none is set, as many acts run as fit into the time.
    pub(crate) count: Option<u64>,
    /// The average pause between two acts.
    pub(crate) pause: Duration,
}

/// When Redis syncs its append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Redis syncs with each write in the first half of the time, and once a second in the second
    /// half.
    Both,
    EverySec,
    Always,
}

const NOTHING: Plan = Plan { acts: &[], count: Some(0), pause: Duration::ZERO };

const ON_PROCESSES: &[(u32, Act)] = &[
    (4, Act::KillWorker),
    (2, Act::FreezeLong),
    (2, Act::FreezeShort),
    (1, Act::KillClient),
    (1, Act::ReplaceWorker),
    (1, Act::PauseQueue),
];

const ON_REDIS: &[(u32, Act)] = &[
    (3, Act::KillRedis),
    (2, Act::FlushScripts),
    (2, Act::KillConnections),
    (1, Act::PauseClients),
    (1, Act::SleepRedis),
    (1, Act::FreezeRedis),
    (2, Act::SetClock),
    (2, Act::FillRedis),
    (1, Act::FillDisk),
    (8, Act::DisturbNetwork),
];

const EVERYTHING: Profile = Profile {
    name: "mixed",
    about: "every fault, half of the time with AOF always and half with everysec (10 min)",
    lease: Duration::from_secs(2),
    workers: 4,
    slots: 16,
    clients: 2,
    per_s: 400,
    tasks: None,
    time: Some(Duration::from_secs(600)),
    plans: [
        Plan { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(1_500) },
        Plan { acts: ON_REDIS, count: None, pause: Duration::from_secs(1) },
    ],
    sync: Sync::Both,
    load: Load::Tasks,
};

/// A short version of everything. It runs for each change.
pub(crate) const QUICK: Profile = Profile {
    name: "quick",
    about: "the same faults in 45 s, as a step of the tests",
    time: Some(Duration::from_secs(45)),
    per_s: 200,
    plans: [
        Plan { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(800) },
        Plan { acts: ON_REDIS, count: None, pause: Duration::from_millis(600) },
    ],
    ..EVERYTHING
};

const ON_FLOWS: &[(u32, Act)] =
    &[(4, Act::KillWorker), (1, Act::FreezeShort), (1, Act::ReplaceWorker)];

const FLOWS: Profile = Profile {
    name: "flows",
    about: "groups, lanes, limits, runs and prerequisites under kill -9, with AOF always (5 min)",
    time: Some(Duration::from_secs(300)),
    per_s: 120,
    plans: [
        Plan { acts: ON_FLOWS, count: None, pause: Duration::from_millis(1_500) },
        Plan { acts: &[(1, Act::KillRedis)], count: None, pause: Duration::from_secs(4) },
    ],
    sync: Sync::Always,
    load: Load::Flows,
    ..EVERYTHING
};

/// A short version of the flows. It runs for each change, too.
pub(crate) const QUICK_FLOWS: Profile = Profile {
    name: "flows-quick",
    about: "the same flows in 20 s, as a step of the tests",
    time: Some(Duration::from_secs(20)),
    per_s: 60,
    plans: [
        Plan { acts: ON_FLOWS, count: None, pause: Duration::from_millis(900) },
        Plan { acts: &[(1, Act::KillRedis)], count: None, pause: Duration::from_secs(3) },
    ],
    ..FLOWS
};

/// All profiles. The first one is the default.
pub(crate) const PROFILES: &[Profile] = &[
    EVERYTHING,
    Profile {
        name: "kills",
        about: "1,000 kill -9 of workers over 1,000,000 tasks",
        per_s: 2_000,
        slots: 64,
        tasks: Some(1_000_000),
        time: None,
        plans: [
            Plan {
                acts: &[(1, Act::KillWorker)],
                count: Some(1_000),
                pause: Duration::from_millis(500),
            },
            NOTHING,
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    Profile {
        name: "defaults",
        about: "100 kill -9 of workers with the default lease of 15 s (8 min)",
        lease: Duration::from_secs(15),
        time: None,
        plans: [
            Plan { acts: &[(1, Act::KillWorker)], count: Some(100), pause: Duration::from_secs(5) },
            NOTHING,
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    Profile {
        name: "redis",
        about: "300 kill -9 of Redis, half of them with AOF always and half with everysec",
        time: None,
        plans: [
            NOTHING,
            Plan { acts: &[(1, Act::KillRedis)], count: Some(300), pause: Duration::from_secs(1) },
        ],
        ..EVERYTHING
    },
    Profile {
        name: "freezes",
        about: "500 SIGSTOP of workers beyond the lease, and 500 below half of it",
        workers: 10,
        slots: 8,
        time: None,
        plans: [
            Plan {
                acts: &[(1, Act::FreezeLong), (1, Act::FreezeShort)],
                count: Some(200),
                pause: Duration::from_millis(200),
            },
            NOTHING,
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    Profile {
        name: "flush",
        about: "SCRIPT FLUSH 100/s and CLIENT KILL 20/s for 60 s",
        time: Some(Duration::from_secs(60)),
        plans: [
            Plan { acts: &[(1, Act::FlushOnce)], count: None, pause: Duration::from_millis(7) },
            Plan {
                acts: &[(1, Act::KillOneConnection)],
                count: None,
                pause: Duration::from_millis(45),
            },
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    Profile {
        name: "flushall",
        about: "FLUSHALL every 5 s, together with acts on processes, for 60 s",
        time: Some(Duration::from_secs(60)),
        plans: [
            Plan { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(1_500) },
            Plan { acts: &[(1, Act::LoseAll)], count: None, pause: Duration::from_secs(5) },
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    FLOWS,
    QUICK,
    QUICK_FLOWS,
];

impl Profile {
    /// Returns all acts of the profile.
    pub(crate) fn acts(&self) -> impl Iterator<Item = Act> {
        self.plans.iter().flat_map(|plan| plan.acts).map(|(_, act)| *act)
    }

    /// Returns the same profile for another time, without its other limits.
    pub(crate) fn lasting(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self.tasks = None;
        for plan in &mut self.plans {
            if !plan.acts.is_empty() {
                plan.count = None;
            }
        }
        self
    }
}
