//! What a run breaks, how often, and when it ends: [`Profile`].

use std::time::Duration;

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
    /// Submits a second, over all clients.
    pub(crate) per_s: u64,
    /// The run goes on until so many tasks were submitted; none: as long as it is disturbed.
    pub(crate) tasks: Option<u64>,
    /// How long it is disturbed; none: until the acts are done.
    pub(crate) time: Option<Duration>,
    /// Acts upon processes, and upon Redis and its connections. The two go on beside each other.
    pub(crate) troupes: [Fleet; 2],
    pub(crate) sync: Sync,
}

/// What one nemesis does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// Acts, each as often as its number says before any comes more often.
    pub(crate) acts: &'static [(u32, Act)],
    /// How many; none: as many as fit into the time.
    pub(crate) count: Option<u64>,
    /// Between two of them, on average.
    pub(crate) pause: Duration,
}

/// When Redis' append-only file is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// With each write for the first half of the time, then once a second.
    Both,
    EverySec,
}

const NOTHING: Fleet = Fleet { acts: &[], count: Some(0), pause: Duration::ZERO };

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
    about: "everything, half of the time with AOF always and half with everysec (10 min)",
    lease: Duration::from_secs(2),
    workers: 4,
    slots: 16,
    clients: 2,
    per_s: 400,
    tasks: None,
    time: Some(Duration::from_secs(600)),
    troupes: [
        Fleet { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(1_500) },
        Fleet { acts: ON_REDIS, count: None, pause: Duration::from_secs(1) },
    ],
    sync: Sync::Both,
};

/// Little of everything, for each change.
pub(crate) const QUICK: Profile = Profile {
    name: "quick",
    about: "the same in 45 s, as a step of the tests",
    time: Some(Duration::from_secs(45)),
    per_s: 200,
    troupes: [
        Fleet { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(800) },
        Fleet { acts: ON_REDIS, count: None, pause: Duration::from_millis(600) },
    ],
    ..EVERYTHING
};

/// All that can be chosen; the first is the default.
pub(crate) const PROFILES: &[Profile] = &[
    EVERYTHING,
    Profile {
        name: "kills",
        about: "1,000 kill -9 of workers over 1,000,000 tasks",
        per_s: 2_000,
        slots: 64,
        tasks: Some(1_000_000),
        time: None,
        troupes: [
            Fleet {
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
        troupes: [
            Fleet {
                acts: &[(1, Act::KillWorker)],
                count: Some(100),
                pause: Duration::from_secs(5),
            },
            NOTHING,
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    Profile {
        name: "redis",
        about: "300 kill -9 of Redis, half of them with AOF always and half with everysec",
        time: None,
        troupes: [
            NOTHING,
            Fleet { acts: &[(1, Act::KillRedis)], count: Some(300), pause: Duration::from_secs(1) },
        ],
        ..EVERYTHING
    },
    Profile {
        name: "freezes",
        about: "500 SIGSTOP of workers beyond the lease, and 500 below half of it",
        workers: 10,
        slots: 8,
        time: None,
        troupes: [
            Fleet {
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
        troupes: [
            Fleet { acts: &[(1, Act::FlushOnce)], count: None, pause: Duration::from_millis(7) },
            Fleet {
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
        about: "FLUSHALL every 5 s beside what is done to processes, for 60 s",
        time: Some(Duration::from_secs(60)),
        troupes: [
            Fleet { acts: ON_PROCESSES, count: None, pause: Duration::from_millis(1_500) },
            Fleet { acts: &[(1, Act::LoseAll)], count: None, pause: Duration::from_secs(5) },
        ],
        sync: Sync::EverySec,
        ..EVERYTHING
    },
    QUICK,
];

impl Profile {
    /// All that it does.
    pub(crate) fn acts(&self) -> impl Iterator<Item = Act> {
        self.troupes.iter().flat_map(|troupe| troupe.acts).map(|(_, act)| *act)
    }

    /// The same for another time, whatever was to be reached.
    pub(crate) fn lasting(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self.tasks = None;
        for troupe in &mut self.troupes {
            if !troupe.acts.is_empty() {
                troupe.count = None;
            }
        }
        self
    }
}
