//! Worker processes that are killed, frozen and stopped while the number of shards changes. Each
//! round writes to a database of the user under its fences, and a journal in that database shows
//! who worked on which row.
//!
//! `OPTIMUS_SHARDS_ROUNDS=5 cargo test -p optimus-journeys --test sources -- shards_faults` has
//! more faults.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::common::{Bench, rounds::Rounds};
use optimus_core::{BoxError, Round, Shard, Sharded, ShardedOptions, Walk};
use optimus_testkit::{Proc, eventually};
use rusqlite::{Connection, TransactionBehavior, params};

const LEASE: Duration = Duration::from_secs(2);
const WITHIN: Duration = Duration::from_secs(30);
/// The rows of the user's table. Each is in one shard, by its number.
const ROWS: u16 = 40;
const FILE: &str = "CHILD_FILE";
const GRACE: Duration = Duration::from_secs(1);

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(WITHIN).unwrap();
    connection
}

#[derive(Clone)]
struct File(PathBuf);

fn journal() -> Sharded {
    let idle = Duration::from_millis(100);
    let options = ShardedOptions { shards: 10, idle, walk: Walk::Forever };
    Sharded::new(("journal", "here"), options, Vec::new, |shard| {
        Ok(Box::pin(async move {
            let file = shard.data::<File>().ok_or("no file")?;
            // A frozen process freezes here, between its decision and its write.
            tokio::time::sleep(Duration::from_millis(60)).await;
            write(&file.0, &shard)?;
            Ok(Round::Again)
        }))
    })
}

/// Writes the rows of the shard, unless a later holder has written.
fn write(file: &Path, shard: &Shard) -> Result<(), BoxError> {
    let mut db = open(file);
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (fence, generation) = (i64::try_from(shard.fence())?, i64::try_from(shard.generation())?);
    let fences = [(format!("journal/{}", shard.index()), fence), ("journal".into(), generation)];
    let mut is_refused = false;
    for (name, fence) in fences {
        let sql = "INSERT INTO fence VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET fence = ?2 WHERE fence <= ?2";
        is_refused |= db.execute(sql, params![name, fence])? == 0;
    }
    if is_refused {
        // What was written to `fence` is taken back with the rest.
        drop(db);
        open(file).execute("INSERT INTO refused VALUES (?1)", [process::id()])?;
        return Err("a later holder has written".into());
    }
    let sql =
        "INSERT INTO journal (row, generation, fence, worker, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    for row in (0..ROWS).filter(|row| row % shard.count() == shard.index()) {
        db.execute(sql, params![row, generation, fence, process::id(), now_ms()])?;
    }
    db.commit()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other test starts this process"]
async fn a_worker_process_for_the_other_test() {
    let bench = Bench::of_parent().await;
    let file = File(PathBuf::from(env::var(FILE).unwrap()));
    let worker = bench.worker().lease(LEASE).shutdown_grace(GRACE).sharded(journal);
    let worker = worker.data(file).data(Rounds::default()).build().unwrap();
    println!("begins");
    worker.run().await.unwrap();
    println!("has ended");
}

/// What the test knows of the processes.
struct Fleet {
    bench: Bench,
    file: PathBuf,
    running: Vec<Proc>,
    frozen: Vec<u32>,
    /// Times in which shards may have no holder, because the count has changed.
    recounts: Vec<(i64, i64)>,
}

impl Fleet {
    fn add(&mut self) {
        let child = self.bench.child("shards_faults::a_worker_process_for_the_other_test");
        self.running.push(child.env(FILE, self.file.display().to_string()).start());
    }

    async fn are_balanced(&self) {
        eventually("loads differ by at most one", WITHIN, async || {
            let seen = self.bench.client.shards("journal").look().await.unwrap();
            let mut loads = BTreeMap::new();
            for worker in &seen.workers {
                loads.insert(worker.worker.clone(), 0_u32);
            }
            for shard in &seen.shards {
                let Some(holder) = &shard.holder else { return false };
                *loads.entry(holder.worker.clone()).or_default() += 1;
            }
            let most = loads.values().max().copied().unwrap_or(0);
            let least = loads.values().min().copied().unwrap_or(0);
            loads.len() == self.running.len() && most - least <= 1
        })
        .await;
    }

    async fn recount(&mut self, count: u16) {
        let from = now_ms();
        self.bench.client.shards("journal").set_count(count).await.unwrap();
        eventually("the new shards are held", WITHIN, async || {
            let seen = self.bench.client.shards("journal").look().await.unwrap();
            seen.count == count && seen.shards.iter().all(|shard| shard.holder.is_some())
        })
        .await;
        self.recounts.push((from, now_ms() + 500));
    }

    async fn freeze(&mut self, at: usize, time: Duration) {
        let process = &self.running[at];
        process.signal("STOP");
        tokio::time::sleep(time).await;
        process.signal("CONT");
        self.frozen.push(process.pid());
    }

    /// Checks the journal: fences never go back, and no row waits longer than a lease and a second.
    fn check(&self) {
        let db = open(&self.file);
        let mut all =
            db.prepare("SELECT row, generation, fence, at FROM journal ORDER BY id").unwrap();
        let lines = all
            .query_map((), |line| Ok((line.get(0)?, (line.get(1)?, line.get(2)?), line.get(3)?)));
        let mut last: BTreeMap<u16, ((i64, i64), i64)> = BTreeMap::new();
        let longest = i64::try_from((LEASE + Duration::from_secs(1)).as_millis()).unwrap();
        let mut worst = 0;
        for line in lines.unwrap() {
            let (row, fences, at): (u16, (i64, i64), i64) = line.unwrap();
            if let Some((before, then)) = last.insert(row, (fences, at)) {
                assert!(before <= fences, "row {row}: {before:?}, then {fences:?}");
                let is_recount = self.recounts.iter().any(|(from, to)| *from <= at && then <= *to);
                let gap = if is_recount { 0 } else { at - then };
                assert!(gap <= longest, "nobody worked on row {row} for {gap} ms");
                worst = worst.max(gap);
            }
        }
        assert_eq!(last.len(), usize::from(ROWS));
        let mut refused = db.prepare("SELECT worker FROM refused").unwrap();
        let refused = refused.query_map((), |line| line.get(0)).unwrap();
        let refused: Vec<u32> = refused.map(Result::unwrap).collect();
        let is_frozen = |worker: &u32| self.frozen.contains(worker);
        assert!(
            refused.iter().all(is_frozen),
            "{refused:?} were refused, {:?} frozen",
            self.frozen
        );
        println!(
            "the longest time without a holder: {worst} ms; refused writes: {}",
            refused.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_is_worked_on_twice_or_left_alone_while_processes_die_freeze_and_come() {
    let bench = Bench::on_redis().await;
    let file = env::temp_dir().join(format!("{}.db", bench.namespace()));
    open(&file)
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
             CREATE TABLE fence (name TEXT PRIMARY KEY, fence INTEGER);
             CREATE TABLE refused (worker INTEGER);
             CREATE TABLE journal (id INTEGER PRIMARY KEY, row INTEGER, generation INTEGER, \
             fence INTEGER, worker INTEGER, at INTEGER)",
        )
        .unwrap();
    let (running, frozen, recounts) = (Vec::new(), Vec::new(), Vec::new());
    let mut fleet = Fleet { bench, file, running, frozen, recounts };
    (0..3).for_each(|_| fleet.add());
    fleet.are_balanced().await;
    let rounds = env::var("OPTIMUS_SHARDS_ROUNDS").ok().and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(1) {
        fleet.running.remove(0).kill9();
        fleet.add();
        fleet.are_balanced().await;
        fleet.freeze(0, LEASE * 2).await;
        fleet.recount(if round % 2 == 0 { 16 } else { 10 }).await;
        fleet.freeze(1, LEASE / 2).await;
        fleet.running[0].sigterm();
        let mut ended = fleet.running.remove(0);
        assert!(ended.wait(WITHIN).await.success());
        fleet.add();
        fleet.are_balanced().await;
        fleet.running.remove(1).kill9();
        fleet.recount(7).await;
        fleet.add();
        fleet.are_balanced().await;
    }
    for process in &fleet.running {
        process.sigterm();
    }
    for mut process in std::mem::take(&mut fleet.running) {
        assert!(process.wait(WITHIN).await.success());
    }
    fleet.check();
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", fleet.file.display())).ok();
    }
}
