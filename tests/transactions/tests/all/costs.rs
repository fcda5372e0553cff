//! What a database has spent, by the counters of Linux and of the database: [`Meter`], [`Spent`].
//! Unlike times, they hardly depend on what else the machine does.

use std::{
    collections::BTreeSet,
    fs,
    ops::{AddAssign, Sub},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use optimus_sql::Dialect;
use sqlx::{Pool, pool::PoolConnection};
use tokio::{task::JoinHandle, time::interval};

use crate::databases::TestDb;

/// How often it is counted which transactions wait for a lock.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The threads of Linux that serve the connections. In PostgreSQL they are processes.
const THREADS: [&str; 2] = [
    "SELECT pid::bigint FROM pg_stat_activity WHERE backend_type = 'client backend'",
    "SELECT tid FROM information_schema.processlist WHERE tid > 0 AND user = 'root'",
];
/// The bytes of log that were ever written.
const LOGGED: [&str; 2] = [
    "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint",
    "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
     WHERE variable_name = 'INNODB_LSN_CURRENT'",
];
/// The deadlocks that were ever found.
const DEADLOCKS: [&str; 2] = [
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
     WHERE variable_name = 'INNODB_DEADLOCKS'",
];
/// How many transactions wait for a lock.
const LOCK_WAITS: [&str; 2] = [
    "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
    "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
     WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
];
/// How many batches were ever noted.
const TURNS: &str = "SELECT number FROM optimus_stream WHERE name = 'outbox'";

/// What was spent in some time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// The processor time of the database for the relay.
    pub relay: Duration,
    /// How often that thread waited, which is for each statement or packet of them.
    pub relay_waits: u64,
    /// The processor time of the database for all other connections.
    pub writers: Duration,
    /// The processor time of the threads that serve no connection.
    pub rest: Duration,
    pub logged: i64,
    pub turns: i64,
    pub deadlocks: i64,
    /// How many waits for locks were seen by looks each 20 ms.
    pub lock_waits: i64,
}

impl Spent {
    pub fn all(&self) -> Duration {
        self.relay + self.writers + self.rest
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            relay: self.relay.saturating_sub(earlier.relay),
            relay_waits: self.relay_waits.saturating_sub(earlier.relay_waits),
            writers: self.writers.saturating_sub(earlier.writers),
            rest: self.rest.saturating_sub(earlier.rest),
            logged: self.logged - earlier.logged,
            turns: self.turns - earlier.turns,
            deadlocks: self.deadlocks - earlier.deadlocks,
            lock_waits: self.lock_waits - earlier.lock_waits,
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.relay += more.relay;
        self.relay_waits += more.relay_waits;
        self.writers += more.writers;
        self.rest += more.rest;
        self.logged += more.logged;
        self.turns += more.turns;
        self.deadlocks += more.deadlocks;
        self.lock_waits += more.lock_waits;
    }
}

/// Reads the counters, by a connection of its own that does not count.
pub struct Meter<DB: TestDb> {
    look: PoolConnection<DB>,
    own: u32,
    lock_waits: Arc<AtomicI64>,
    looks: JoinHandle<()>,
}

impl<DB: TestDb> Meter<DB> {
    pub async fn of(pool: &Pool<DB>) -> Self {
        let mut look = pool.acquire().await.unwrap();
        let own = match DB::DIALECT {
            Dialect::Postgres => "SELECT pg_backend_pid()::bigint",
            _ => "SELECT tid FROM information_schema.processlist WHERE id = connection_id()",
        };
        let own = thread(read::<DB>(&mut look, own).await[0]);
        let lock_waits = Arc::new(AtomicI64::new(0));
        let looks = tokio::spawn(look_for_waits(pool.clone(), lock_waits.clone()));
        Self { look, own, lock_waits, looks }
    }

    /// Returns the threads of all connections.
    pub async fn connections(&mut self) -> BTreeSet<u32> {
        let threads = read::<DB>(&mut self.look, of::<DB>(THREADS)).await;
        threads.into_iter().map(thread).collect()
    }

    /// Returns the threads of the whole server.
    pub fn server(&self) -> BTreeSet<u32> {
        if DB::DIALECT != Dialect::Postgres {
            return numbers(&format!("/proc/{}/task", self.own)).collect();
        }
        let server = parent(self.own);
        numbers("/proc").filter(|process| parent(*process) == server).collect()
    }

    /// Lets the server run on these cores only.
    pub fn pin(&self, cores: &str) {
        if DB::DIALECT != Dialect::Postgres {
            return pin(self.own, cores);
        }
        pin(parent(self.own), cores);
        self.server().into_iter().for_each(|process| pin(process, cores));
    }

    /// Reads all counters. `relays` are the threads that serve the relay.
    pub async fn read(&mut self, relays: &BTreeSet<u32>) -> Spent {
        let connections = self.connections().await;
        let mut spent = Spent::default();
        for thread in self.server() {
            if relays.contains(&thread) {
                spent.relay += processor_time(thread);
                spent.relay_waits += waits(thread);
            } else if !connections.contains(&thread) {
                spent.rest += processor_time(thread);
            } else if thread != self.own {
                spent.writers += processor_time(thread);
            }
        }
        spent.logged = read::<DB>(&mut self.look, of::<DB>(LOGGED)).await[0];
        spent.deadlocks = read::<DB>(&mut self.look, of::<DB>(DEADLOCKS)).await[0];
        spent.turns = read::<DB>(&mut self.look, TURNS).await.first().copied().unwrap_or(0);
        spent.lock_waits = self.lock_waits.load(Ordering::Relaxed);
        spent
    }
}

impl<DB: TestDb> Drop for Meter<DB> {
    fn drop(&mut self) {
        self.looks.abort();
    }
}

/// Lets a process and its threads run on these cores only.
pub fn pin(process: u32, cores: &str) {
    let process = process.to_string();
    let mut last = None;
    // A thread may end meanwhile, and then `taskset` leaves out the others.
    for _ in 0..20 {
        let pinned = Command::new("taskset").args(["-acp", cores, &process]).output();
        let pinned = pinned.expect("taskset, of the package util-linux");
        let is_gone = !fs::exists(format!("/proc/{process}")).unwrap();
        if pinned.status.success() || is_gone {
            return;
        }
        last = Some(pinned);
    }
    panic!("{last:?}");
}

async fn look_for_waits<DB: TestDb>(pool: Pool<DB>, seen: Arc<AtomicI64>) {
    let mut look = pool.acquire().await.unwrap();
    let mut ticks = interval(LOOK_EVERY);
    loop {
        ticks.tick().await;
        let waits = read::<DB>(&mut look, of::<DB>(LOCK_WAITS)).await[0];
        seen.fetch_add(waits, Ordering::Relaxed);
    }
}

async fn read<DB: TestDb>(look: &mut DB::Connection, sql: &str) -> Vec<i64> {
    DB::numbers(look, sql.to_owned()).await.unwrap()
}

fn of<DB: TestDb>(both: [&'static str; 2]) -> &'static str {
    both[usize::from(DB::DIALECT != Dialect::Postgres)]
}

fn thread(number: i64) -> u32 {
    u32::try_from(number).unwrap()
}

/// Returns the names in a folder of `/proc` that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns a line of `/proc/<thread>/status`; 0 if the thread is gone.
fn status(thread: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn parent(process: u32) -> u32 {
    u32::try_from(status(process, "PPid")).unwrap()
}

fn waits(thread: u32) -> u64 {
    status(thread, "voluntary_ctxt_switches")
}

/// Returns how long a thread has run, in the system and by itself.
fn processor_time(thread: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    let ran = stat.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.unwrap_or(0))
}
