//! Guards under contention: holders that others have replaced, and counts that change, while all
//! of them write. The functions of two namespaces have one name and one database.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    BoxError, Client, Data, Post, Progress, RosterName, Shard, ShardFacts, WorkerId,
    broker::Holder, broker::Positions,
};
use optimus_sql::{Error, ShardGuard as _};
use optimus_testkit::eventually;
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{SOON, Setup, connect},
};

crate::on_each_database! {
    holders_that_are_replaced_apply_each_row_once
}

/// Of each namespace.
const ROWS: i64 = 200;
/// Of each namespace.
const HOLDERS: usize = 4;
const COUNTS: u16 = 8;

/// What Redis would say, but it lets several hold one shard.
struct Grants {
    /// That of a namespace, which its tables have in their names.
    client: Client,
    name: &'static str,
    fences: AtomicU64,
    present: Mutex<(u64, u16)>,
    is_over: AtomicBool,
    stale: AtomicU64,
}

impl Grants {
    fn next(&self) -> u64 {
        self.fences.fetch_add(1, Ordering::SeqCst)
    }

    fn change_count(&self) {
        *self.present.lock().unwrap() = (self.next(), fastrand::u16(1..=COUNTS));
    }

    async fn new<DB: TestDb>(setup: &Setup<DB>, name: &'static str) -> Self {
        let rows: Vec<String> = (0..ROWS).map(|n| format!("({n}, 0)")).collect();
        let mut connection = setup.pool.acquire().await.unwrap();
        for sql in [
            format!("CREATE TABLE effects_{name} (n bigint NOT NULL)"),
            format!("CREATE TABLE todo_{name} (n bigint PRIMARY KEY, done bigint NOT NULL)"),
            format!("INSERT INTO todo_{name} VALUES {}", rows.join(",")),
        ] {
            DB::run_text(&mut connection, sql).await.unwrap();
        }
        drop(connection);
        Self {
            client: connect(&setup.redis, &format!("{name}_{}", setup.namespace)).await,
            name,
            fences: AtomicU64::new(2),
            present: Mutex::new((1, 4)),
            is_over: AtomicBool::new(false),
            stale: AtomicU64::new(0),
        }
    }

    fn shard(&self) -> Shard {
        let (generation, count) = *self.present.lock().unwrap();
        let (index, fence) = (fastrand::u16(..count), self.next());
        let (roster, worker) = (RosterName::shards("rows").unwrap(), WorkerId::generate("here", 1));
        let granted = (Post { generation, index }, fence);
        Shard::of(ShardFacts {
            name: "rows".to_owned(),
            index,
            count,
            generation,
            fence,
            data: Arc::new(Data::new()),
            stopping: Arc::default(),
            progress: Arc::new(Progress::from(Positions::default())),
            holder: Some((self.client.broker().clone(), Holder { roster, worker, granted })),
        })
    }
}

async fn round<DB: TestDb>(setup: &Setup<DB>, name: &str, shard: &Shard) -> Result<(), BoxError> {
    let mut tx = setup.pool.begin().await?;
    shard.guard(&mut tx).await?;
    let (count, index) = (shard.count(), shard.index());
    let todo = format!(
        "SELECT n FROM todo_{name} WHERE done = 0 AND n % {count} = {index} ORDER BY n LIMIT 3"
    );
    let page = DB::numbers(&mut tx, todo).await?;
    sleep(Duration::from_millis(fastrand::u64(..3))).await;
    for n in &page {
        DB::run_text(&mut tx, format!("INSERT INTO effects_{name} VALUES ({n})")).await?;
        DB::run_text(&mut tx, format!("UPDATE todo_{name} SET done = 1 WHERE n = {n}")).await?;
    }
    shard.checkpoint_in(&mut tx, &page.last()).await?;
    Ok(tx.commit().await?)
}

async fn hold<DB: TestDb>(setup: &Setup<DB>, grants: &Grants) -> Result<(), BoxError> {
    while !grants.is_over.load(Ordering::SeqCst) {
        let shard = grants.shard();
        for _ in 0..fastrand::u8(1..5) {
            sleep(Duration::from_millis(fastrand::u64(..4))).await;
            let ended = round(setup, grants.name, &shard).await;
            match ended.map_err(<dyn std::error::Error + Send + Sync>::downcast::<Error>) {
                Ok(()) => {}
                Err(Ok(problem)) if problem.is_stale() => {
                    grants.stale.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                Err(Ok(problem)) => return Err(problem.into()),
                Err(Err(problem)) => return Err(problem),
            }
        }
    }
    Ok(())
}

/// Runs holders until all rows are applied, while the number of shards changes.
async fn apply_all<DB: TestDb>(setup: &Setup<DB>, grants: &Grants) {
    let holders = (0..HOLDERS).map(|_| async {
        let ended = hold(setup, grants).await;
        grants.is_over.store(true, Ordering::SeqCst);
        ended
    });
    let count = async |what: &str| {
        let select = format!("SELECT COUNT({what}) FROM effects_{}", grants.name);
        DB::numbers(&mut *setup.pool.acquire().await.unwrap(), select).await.unwrap()[0]
    };
    let applied = async || count("*").await;
    let changes = async {
        let mut seen = 0;
        while !grants.is_over.load(Ordering::SeqCst) {
            let moved = async || {
                applied().await >= (seen + 15).min(ROWS) || grants.is_over.load(Ordering::SeqCst)
            };
            eventually("rows are applied", SOON, moved).await;
            seen = applied().await;
            if seen >= ROWS {
                grants.is_over.store(true, Ordering::SeqCst);
            }
            grants.change_count();
        }
    };
    let (ended, ()) = tokio::join!(futures_util::future::join_all(holders), changes);
    for ended in ended {
        ended.unwrap();
    }
    assert_eq!((applied().await, count("DISTINCT n").await), (ROWS, ROWS));
    println!("{}: {} rounds were refused", grants.name, grants.stale.load(Ordering::SeqCst));
}

async fn holders_that_are_replaced_apply_each_row_once<DB: TestDb>(setup: Setup<DB>) {
    let (blue, green) = (Grants::new(&setup, "blue").await, Grants::new(&setup, "green").await);
    tokio::join!(apply_all(&setup, &blue), apply_all(&setup, &green));
}
