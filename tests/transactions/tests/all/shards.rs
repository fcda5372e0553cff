//! Fences and positions of shards, in transactions.

use std::{sync::Arc, time::Duration};

use optimus_core::{Data, Progress, Shard, ShardFacts, broker::Positions};
use optimus_sql::{Error, ShardGuard as _};
use optimus_testkit::eventually;
use sqlx::Postgres;
use tokio::time::timeout;

use crate::{
    databases::TestDb,
    setup::{SOON, Setup},
};

crate::on_each_database! {
    a_position_is_committed_with_the_work
    an_earlier_holder_is_refused
    shards_of_another_count_begin_at_the_smallest_position
    a_pass_that_starts_again_begins_at_the_beginning
    a_new_count_waits_for_transactions_of_the_old_one
    many_first_guards_at_once_all_pass
    a_position_needs_a_guard
    a_position_is_refused_once_a_later_count_has_begun
    a_guard_that_is_rolled_back_is_none
    a_position_without_a_guard_keeps_a_new_count_waiting
}

/// A holder of a shard.
#[derive(Clone, Copy)]
struct Holder {
    generation: u64,
    count: u16,
    index: u16,
    fence: u64,
}

impl Holder {
    fn shard(self) -> Shard {
        self.restarted(None)
    }

    fn restarted(self, restarted: Option<u64>) -> Shard {
        let before = Positions { restarted, ..Positions::default() };
        let Self { generation, count, index, fence } = self;
        Shard::of(ShardFacts {
            name: "events".to_owned(),
            index,
            count,
            generation,
            fence,
            data: Arc::new(Data::new()),
            stopping: Arc::default(),
            progress: Arc::new(Progress::from(before)),
            holder: None,
        })
    }
}

const FIRST: Holder = Holder { generation: 10, count: 2, index: 0, fence: 11 };
const SECOND: Holder = Holder { index: 1, fence: 12, ..FIRST };

/// A round that goes on to this position.
async fn go<DB: TestDb>(setup: &Setup<DB>, shard: &Shard, to: i64) -> Result<Option<i64>, Error> {
    let mut tx = setup.pool.begin().await?;
    shard.guard(&mut tx).await?;
    let before = shard.position().unwrap();
    shard.checkpoint_in(&mut tx, &to).await?;
    tx.commit().await?;
    Ok(before)
}

/// Where a shard is.
async fn place<DB: TestDb>(setup: &Setup<DB>, shard: &Shard) -> Result<Option<i64>, Error> {
    let mut tx = setup.pool.begin().await?;
    shard.guard(&mut tx).await?;
    tx.commit().await?;
    Ok(shard.position().unwrap())
}

async fn a_position_is_committed_with_the_work<DB: TestDb>(setup: Setup<DB>) {
    let shard = FIRST.shard();
    assert_eq!(go(&setup, &shard, 5).await.unwrap(), None);
    assert_eq!(go(&setup, &shard, 7).await.unwrap(), Some(5));
    let mut tx = setup.pool.begin().await.unwrap();
    shard.guard(&mut tx).await.unwrap();
    shard.checkpoint_in(&mut tx, &9).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(place(&setup, &shard).await.unwrap(), Some(7));
    let next = Holder { fence: 20, ..FIRST }.shard();
    assert_eq!(place(&setup, &next).await.unwrap(), Some(7));
    assert_eq!(place(&setup, &SECOND.shard()).await.unwrap(), None, "another shard");
}

async fn an_earlier_holder_is_refused<DB: TestDb>(setup: Setup<DB>) {
    let (old, new) = (FIRST.shard(), Holder { fence: 13, ..FIRST }.shard());
    go(&setup, &old, 5).await.unwrap();
    go(&setup, &new, 6).await.unwrap();
    assert!(place(&setup, &old).await.unwrap_err().is_stale(), "before it reads");
    let refused = go(&setup, &old, 7).await.unwrap_err();
    assert!(refused.is_stale(), "{refused}");
    let mut tx = setup.pool.begin().await.unwrap();
    assert!(old.checkpoint_in(&mut tx, &7).await.unwrap_err().is_stale());
    drop(tx);
    assert_eq!(place(&setup, &new).await.unwrap(), Some(6));
    place(&setup, &SECOND.shard()).await.unwrap();
}

async fn shards_of_another_count_begin_at_the_smallest_position<DB: TestDb>(setup: Setup<DB>) {
    let of = |generation, count, index| {
        let fence = generation + 1 + u64::from(index);
        Holder { generation, count, index, fence }.shard()
    };
    go(&setup, &FIRST.shard(), 5).await.unwrap();
    go(&setup, &SECOND.shard(), 9).await.unwrap();
    for index in 0..3 {
        assert_eq!(place(&setup, &of(20, 3, index)).await.unwrap(), Some(5), "shard {index}");
    }
    for old in [FIRST, SECOND] {
        assert!(place(&setup, &old.shard()).await.unwrap_err().is_stale());
    }
    // The other two are still where they began.
    go(&setup, &of(20, 3, 0), 50).await.unwrap();
    assert_eq!(place(&setup, &of(30, 1, 0)).await.unwrap(), Some(5));
    go(&setup, &of(30, 1, 0), 40).await.unwrap();
    assert_eq!(place(&setup, &of(40, 2, 1)).await.unwrap(), Some(40));
    // The numbers are compared, not their texts.
    go(&setup, &of(40, 2, 0), 100).await.unwrap();
    go(&setup, &of(40, 2, 1), 60).await.unwrap();
    assert_eq!(place(&setup, &of(50, 4, 3)).await.unwrap(), Some(60));
}

async fn a_pass_that_starts_again_begins_at_the_beginning<DB: TestDb>(setup: Setup<DB>) {
    go(&setup, &FIRST.shard(), 5).await.unwrap();
    go(&setup, &SECOND.shard(), 9).await.unwrap();
    let next = Holder { generation: 20, fence: 21, ..FIRST };
    assert_eq!(go(&setup, &next.restarted(Some(20)), 3).await.unwrap(), None);
    let later = Holder { generation: 30, fence: 31, ..FIRST };
    go(&setup, &Holder { index: 1, fence: 22, ..next }.restarted(Some(20)), 4).await.unwrap();
    assert_eq!(place(&setup, &later.restarted(Some(20))).await.unwrap(), Some(3));
}

async fn a_new_count_waits_for_transactions_of_the_old_one<DB: TestDb>(setup: Setup<DB>) {
    let (old, new) = (FIRST.shard(), Holder { generation: 20, count: 1, index: 0, fence: 21 });
    go(&setup, &old, 1).await.unwrap();
    go(&setup, &SECOND.shard(), 5).await.unwrap();
    let mut open = setup.pool.begin().await.unwrap();
    old.guard(&mut open).await.unwrap();
    let new = new.shard();
    let waits = place(&setup, &new);
    tokio::pin!(waits);
    assert!(timeout(Duration::from_millis(200), &mut waits).await.is_err(), "it waits");
    old.checkpoint_in(&mut open, &3).await.unwrap();
    open.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), Some(3));
    assert!(place(&setup, &old).await.unwrap_err().is_stale());
}

/// They all meet while a transaction of the old count is open.
async fn many_first_guards_at_once_all_pass<DB: TestDb>(setup: Setup<DB>) {
    let of = |generation, index| {
        let fence = generation + 1 + u64::from(index);
        Holder { generation, count: 8, index, fence }.shard()
    };
    for generation in [100, 200] {
        let mut open = setup.pool.begin().await.unwrap();
        of(generation - 50, 0).guard(&mut open).await.unwrap();
        let holders = (0..8).map(|index| {
            let (setup, shard) = (&setup, of(generation, index));
            async move {
                for to in 0..5 {
                    go(setup, &shard, to).await.unwrap();
                }
            }
        });
        let ends = async {
            let open_and_eight = async || setup.pool.size() as usize - setup.pool.num_idle() >= 9;
            eventually("all have begun", SOON, open_and_eight).await;
            open.commit().await.unwrap();
        };
        tokio::join!(futures_util::future::join_all(holders), ends);
    }
}

async fn a_position_needs_a_guard<DB: TestDb>(setup: Setup<DB>) {
    let mut tx = setup.pool.begin().await.unwrap();
    let refused = FIRST.shard().checkpoint_in(&mut tx, &7).await.unwrap_err();
    assert!(refused.to_string().contains("shard.guard(&mut tx) first"), "{refused}");
    let refused = FIRST.shard().checkpoint_in(&mut tx, &"x".repeat(70_000)).await.unwrap_err();
    assert!(refused.to_string().contains("the limit is 65536"), "{refused}");
}

/// The row of the shard still has the fence of the old holder then.
async fn a_position_is_refused_once_a_later_count_has_begun<DB: TestDb>(setup: Setup<DB>) {
    let old = SECOND.shard();
    go(&setup, &FIRST.shard(), 3).await.unwrap();
    go(&setup, &old, 5).await.unwrap();
    let new = Holder { generation: 20, count: 1, index: 0, fence: 21 }.shard();
    assert_eq!(place(&setup, &new).await.unwrap(), Some(3));
    let mut tx = setup.pool.begin().await.unwrap();
    let refused = old.checkpoint_in(&mut tx, &6).await.unwrap_err();
    assert!(refused.is_stale() && refused.to_string().contains("has seen 20"), "{refused}");
    drop(tx);
    // A position of the later count needs a guard of its own holder.
    let mut tx = setup.pool.begin().await.unwrap();
    let other = Holder { generation: 20, count: 2, index: 1, fence: 22 }.shard();
    let refused = other.checkpoint_in(&mut tx, &6).await.unwrap_err();
    assert!(refused.to_string().contains("shard.guard(&mut tx) first"), "{refused}");
}

async fn a_guard_that_is_rolled_back_is_none<DB: TestDb>(setup: Setup<DB>) {
    let (old, new) = (FIRST.shard(), Holder { fence: 13, ..FIRST }.shard());
    go(&setup, &old, 5).await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    DB::run_plain(&mut tx, "SAVEPOINT work").await.unwrap();
    new.guard(&mut tx).await.unwrap();
    DB::run_plain(&mut tx, "ROLLBACK TO SAVEPOINT work").await.unwrap();
    let refused = new.checkpoint_in(&mut tx, &7).await.unwrap_err();
    assert!(refused.to_string().contains("shard.guard(&mut tx) first"), "{refused}");
    drop(tx);
    assert_eq!(place(&setup, &old).await.unwrap(), Some(5));
}

/// It is as safe as one with a guard.
async fn a_position_without_a_guard_keeps_a_new_count_waiting<DB: TestDb>(setup: Setup<DB>) {
    let old = FIRST.shard();
    go(&setup, &old, 1).await.unwrap();
    go(&setup, &SECOND.shard(), 5).await.unwrap();
    let mut open = setup.pool.begin().await.unwrap();
    old.checkpoint_in(&mut open, &3).await.unwrap();
    let new = Holder { generation: 20, count: 1, index: 0, fence: 21 }.shard();
    let waits = place(&setup, &new);
    tokio::pin!(waits);
    assert!(timeout(Duration::from_millis(200), &mut waits).await.is_err(), "it waits");
    open.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), Some(3));
}

/// Such a transaction would not see what the holder before has committed meanwhile.
#[tokio::test]
async fn a_repeatable_read_is_refused() {
    let setup = Setup::<Postgres>::start().await;
    let mut tx = setup.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    let refused = FIRST.shard().guard(&mut tx).await.unwrap_err();
    assert!(refused.to_string().contains("READ COMMITTED"), "{refused}");
}

/// A holder that is frozen within a transaction must not keep the next one waiting.
#[tokio::test]
async fn a_guard_has_a_limit_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let mut tx = setup.pool.begin().await.unwrap();
    FIRST.shard().guard(&mut tx).await.unwrap();
    let limit = "SHOW idle_in_transaction_session_timeout";
    let limit: String = sqlx::query_scalar(limit).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(limit, "30s");
}
