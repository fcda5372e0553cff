//! Guards under contention: holders that others have replaced, and counts that change, while all
//! of them write.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus_core::{BoxError, Data, Progress, Shard, ShardFacts, broker::Positions};
use optimus_sql::{Error, ShardGuard as _};
use optimus_testkit::eventually;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    databases::TestDb,
    setup::{SOON, Setup},
};

crate::on_each_database! {
    holders_that_are_replaced_apply_each_row_once
}

const ROWS: i64 = 400;
const HOLDERS: usize = 8;
const COUNTS: u16 = 8;

/// What Redis would say, but it lets several hold one shard.
struct Grants {
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

    fn shard(&self) -> Shard {
        let (generation, count) = *self.present.lock().unwrap();
        Shard::of(ShardFacts {
            name: "rows".to_owned(),
            index: fastrand::u16(..count),
            count,
            generation,
            fence: self.next(),
            data: Arc::new(Data::new()),
            stopping: CancellationToken::new(),
            progress: Arc::new(Progress::from(Positions::default())),
            holder: None,
        })
    }
}

async fn round<DB: TestDb>(setup: &Setup<DB>, shard: &Shard) -> Result<(), BoxError> {
    let mut tx = setup.pool.begin().await?;
    shard.guard(&mut tx).await?;
    let (count, index) = (shard.count(), shard.index());
    let todo =
        format!("SELECT n FROM todo WHERE done = 0 AND n % {count} = {index} ORDER BY n LIMIT 3");
    let page = DB::numbers(&mut tx, todo).await?;
    sleep(Duration::from_millis(fastrand::u64(..3))).await;
    for n in &page {
        DB::run_text(&mut tx, format!("INSERT INTO effects VALUES ({n})")).await?;
        DB::run_text(&mut tx, format!("UPDATE todo SET done = 1 WHERE n = {n}")).await?;
    }
    shard.checkpoint_in(&mut tx, &page.last()).await?;
    Ok(tx.commit().await?)
}

async fn hold<DB: TestDb>(setup: &Setup<DB>, grants: &Grants) -> Result<(), BoxError> {
    while !grants.is_over.load(Ordering::SeqCst) {
        let shard = grants.shard();
        for _ in 0..fastrand::u8(1..5) {
            sleep(Duration::from_millis(fastrand::u64(..4))).await;
            let ended = round(setup, &shard).await;
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

async fn holders_that_are_replaced_apply_each_row_once<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("CREATE TABLE effects (n bigint NOT NULL)").await;
    setup.sql("CREATE TABLE todo (n bigint PRIMARY KEY, done bigint NOT NULL)").await;
    let rows: Vec<String> = (0..ROWS).map(|n| format!("({n}, 0)")).collect();
    let insert = format!("INSERT INTO todo VALUES {}", rows.join(","));
    DB::run_text(&mut *setup.pool.acquire().await.unwrap(), insert).await.unwrap();
    let grants = Grants {
        fences: AtomicU64::new(2),
        present: Mutex::new((1, 4)),
        is_over: AtomicBool::new(false),
        stale: AtomicU64::new(0),
    };
    let holders = (0..HOLDERS).map(|_| async {
        let ended = hold(&setup, &grants).await;
        grants.is_over.store(true, Ordering::SeqCst);
        ended
    });
    let applied = async || DB::number(&setup.pool, "SELECT COUNT(*) FROM effects").await;
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
    let distinct = "SELECT COUNT(DISTINCT n) FROM effects";
    assert_eq!((applied().await, DB::number(&setup.pool, distinct).await), (ROWS, ROWS));
    println!("{} rounds were refused", grants.stale.load(Ordering::SeqCst));
}
