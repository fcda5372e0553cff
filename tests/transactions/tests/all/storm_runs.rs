//! What ran in a storm: each handler notes itself in Redis, so that a killed worker takes no note
//! along.

use std::{collections::HashMap, sync::atomic::AtomicU64};

use optimus_core::{BoxError, Call, Context, Task, TaskOptions};
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};

use crate::{databases::TestDb, setup::Setup};

/// When a transaction began and when its commit was answered, in ticks of one clock.
pub type Times = (u64, u64);

/// Orders what happens in all writers.
pub static CLOCK: AtomicU64 = AtomicU64::new(1);

/// A task that notes its start.
#[derive(Serialize, Deserialize)]
pub struct Moved {
    writer: u32,
    number: u32,
}

impl Task for Moved {
    const NAME: &'static str = "moved";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().max_losses(1_000)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let mut runs: Runs = ctx.data().ok_or("no data")?;
        let text = format!("{} {} {} {}", ctx.fence(), ctx.attempt(), self.writer, self.number);
        let mut push = redis::cmd("RPUSH");
        Ok(push.arg(&runs.key).arg(text).query_async(&mut runs.redis).await?)
    }
}

pub fn moved(writer: u32, number: u32) -> Call<Moved> {
    Moved { writer, number }.call()
}

/// The notes of all handlers.
#[derive(Clone)]
pub struct Runs {
    redis: MultiplexedConnection,
    key: String,
}

/// One run of a handler.
#[derive(Debug)]
pub struct Run {
    /// It grows with the claims, and tasks are claimed in the order of their submits.
    fence: u64,
    attempt: u32,
    writer: u32,
    number: u32,
}

impl Runs {
    pub async fn of<DB: TestDb>(setup: &Setup<DB>) -> Self {
        let client = redis::Client::open(&*setup.redis).unwrap();
        let redis = client.get_multiplexed_async_connection().await.unwrap();
        Self { redis, key: format!("runs-of-{}", setup.namespace) }
    }

    /// Returns the runs in the order of their claims, and removes the notes.
    pub async fn all(mut self) -> Vec<Run> {
        let mut read = redis::cmd("LRANGE");
        read.arg(&self.key).arg(0).arg(-1);
        let notes: Vec<String> = read.query_async(&mut self.redis).await.unwrap();
        redis::cmd("DEL").arg(&self.key).query_async::<()>(&mut self.redis).await.unwrap();
        let mut runs: Vec<Run> = notes.iter().map(|note| read_run(note)).collect();
        // Tasks of one claim have one fence, and begin in its order on the one thread of a worker.
        runs.sort_by_key(|run| run.fence);
        runs
    }
}

fn read_run(note: &str) -> Run {
    let numbers: Vec<u64> = note.split(' ').map(|word| word.parse().unwrap()).collect();
    let small = |at: usize| u32::try_from(numbers[at]).unwrap();
    Run { fence: numbers[0], attempt: small(1), writer: small(2), number: small(3) }
}

/// Checks that each call of each writer ran, that its first attempt began once, and that calls
/// were claimed in the order in which they were committed. An attempt after a lost one has no
/// order: its task returned to the queue when the lease of its worker was over.
pub fn assert_exact(runs: &[Run], committed: &[Vec<Times>]) {
    let mut ran: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
    for run in runs {
        ran.entry((run.writer, run.number)).or_default().push(run.attempt);
    }
    for (writer, times) in (0..).zip(committed) {
        for number in (0..).take(times.len()) {
            assert!(ran.contains_key(&(writer, number)), "writer {writer}: {number} is lost");
        }
    }
    let is_twice = |attempts: &mut Vec<u32>| {
        attempts.sort_unstable();
        attempts.windows(2).any(|two| two[0] == two[1])
    };
    ran.retain(|_, attempts| is_twice(attempts));
    assert!(ran.is_empty(), "two tasks ran for each of {} calls, as for {ran:?}", ran.len());
    // The number that follows the last one, of each writer, and the latest begin of all.
    let (mut next, mut latest) = (HashMap::<u32, u32>::new(), 0);
    for run in runs.iter().filter(|run| run.attempt == 1) {
        let next = next.entry(run.writer).or_default();
        assert!(run.number >= *next, "writer {}: {} is out of order", run.writer, run.number);
        *next = run.number + 1;
        let writer = committed.get(run.writer as usize).unwrap();
        let committed = writer.get(run.number as usize);
        let (begun, ended) = *committed.expect("a call of a rolled back transaction ran");
        assert!(ended > latest, "a transaction that began after the commit has overtaken it");
        latest = latest.max(begun);
    }
}
