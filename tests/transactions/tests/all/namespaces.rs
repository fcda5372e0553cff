//! Sharded functions of one name in several namespaces with one database: none bars another. What
//! the first release has written, without a namespace, stays valid.

use std::sync::Arc;

use optimus_core::{
    Data, Post, Progress, RosterName, Shard, ShardFacts, WorkerId, broker::Holder,
    broker::Positions,
};
use optimus_sql::{Error, ShardGuard as _};
use tokio::time::timeout;

use crate::{
    databases::TestDb,
    setup::{SOON, Setup, connect},
};

crate::on_each_database! {
    namespaces_do_not_bar_each_other
    the_rows_of_the_first_release_stay_valid
    a_guard_that_is_rolled_back_takes_no_rows
    a_namespace_waits_for_no_transaction_of_another
}

/// Returns shard 0 of a function, as a worker of this namespace has it.
async fn shard<DB: TestDb>(setup: &Setup<DB>, namespace: &str, generation: u64) -> Shard {
    let client = connect(&setup.redis, &format!("{namespace}-{}", setup.namespace)).await;
    let granted = (Post { generation, index: 0 }, generation + 1);
    let (roster, worker) = (RosterName::shards("events").unwrap(), WorkerId::generate("here", 1));
    Shard::of(ShardFacts {
        name: "events".to_owned(),
        index: 0,
        count: 1,
        generation,
        fence: granted.1,
        data: Arc::new(Data::new()),
        stopping: Arc::default(),
        progress: Arc::new(Progress::from(Positions::default())),
        holder: Some((client.broker().clone(), Holder { roster, worker, granted })),
    })
}

/// A round that goes on to this position. Returns where it began.
async fn go<DB: TestDb>(setup: &Setup<DB>, shard: &Shard, to: i64) -> Result<Option<i64>, Error> {
    let mut tx = setup.pool.begin().await?;
    shard.guard(&mut tx).await?;
    let before = shard.position().unwrap();
    shard.checkpoint_in(&mut tx, &to).await?;
    tx.commit().await?;
    Ok(before)
}

/// What the first release writes at the begin of a generation.
async fn begins_without_namespace<DB: TestDb>(setup: &Setup<DB>, generation: u64, base: &str) {
    let position = format!("{{\"count\":1,\"base\":[{base}]}}");
    let update = format!(
        "UPDATE optimus_fence SET fence = {generation}, position = '{position}' \
         WHERE name = '@shard.events'"
    );
    DB::run_text(&mut *setup.pool.acquire().await.unwrap(), update).await.unwrap();
}

async fn namespaces_do_not_bar_each_other<DB: TestDb>(setup: Setup<DB>) {
    let (blue, green) = (shard(&setup, "blue", 10).await, shard(&setup, "green", 20).await);
    let mut before = None;
    for round in 0..3 {
        assert_eq!(go(&setup, &blue, round).await.unwrap(), before);
        assert_eq!(go(&setup, &green, 100 + round).await.unwrap(), before.map(|to| 100 + to));
        before = Some(round);
    }
    // Each has its own counts.
    let later = shard(&setup, "green", 30).await;
    assert_eq!(go(&setup, &later, 200).await.unwrap(), Some(102));
    assert!(go(&setup, &green, 103).await.unwrap_err().is_stale());
    assert_eq!(go(&setup, &blue, 3).await.unwrap(), Some(2));
    let later = shard(&setup, "blue", 25).await;
    assert_eq!(go(&setup, &later, 4).await.unwrap(), Some(3));
    assert!(go(&setup, &blue, 5).await.unwrap_err().is_stale());
    assert!(go(&setup, &shard(&setup, "red", 5).await, 0).await.unwrap().is_none());
}

async fn the_rows_of_the_first_release_stay_valid<DB: TestDb>(setup: Setup<DB>) {
    let create = "INSERT INTO optimus_fence (name, fence, position) VALUES \
                  ('@shard.events', 10, '{\"count\":1,\"base\":[]}'), ('@shard.events/0', 11, '7')";
    DB::run_text(&mut *setup.pool.acquire().await.unwrap(), create.to_owned()).await.unwrap();
    // The same generation, served by both releases.
    let blue = shard(&setup, "blue", 10).await;
    assert_eq!(go(&setup, &blue, 8).await.unwrap(), Some(7));
    let fence = "SELECT fence FROM optimus_fence WHERE name = '@shard.events/0'";
    assert_eq!(DB::number(&setup.pool, fence).await, 11, "a holder of either meets the other");
    let green = shard(&setup, "green", 12).await;
    assert_eq!(go(&setup, &green, 70).await.unwrap(), None);
    // The first release begins the next one.
    begins_without_namespace(&setup, 20, "\"8\"").await;
    assert_eq!(go(&setup, &green, 71).await.unwrap(), Some(70));
    assert!(go(&setup, &blue, 9).await.unwrap_err().is_stale());
    let blue = shard(&setup, "blue", 20).await;
    assert_eq!(go(&setup, &blue, 9).await.unwrap(), Some(8));
    assert_eq!(go(&setup, &blue, 10).await.unwrap(), Some(9));
    assert_eq!(go(&setup, &green, 72).await.unwrap(), Some(71));
}

async fn a_guard_that_is_rolled_back_takes_no_rows<DB: TestDb>(setup: Setup<DB>) {
    // Two new servers have the same small numbers.
    let (blue, green) = (shard(&setup, "blue", 10).await, shard(&setup, "green", 10).await);
    let mut tx = setup.pool.begin().await.unwrap();
    blue.guard(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(go(&setup, &green, 5).await.unwrap(), None);
    let mut tx = setup.pool.begin().await.unwrap();
    blue.guard(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    // Nothing has begun where the guard has been.
    let mut tx = setup.pool.begin().await.unwrap();
    let refused = blue.checkpoint_in(&mut tx, &1).await.unwrap_err();
    assert!(refused.to_string().contains("shard.guard(&mut tx) first"), "{refused}");
    drop(tx);
    assert_eq!(go(&setup, &blue, 1).await.unwrap(), None);
    assert_eq!(go(&setup, &green, 6).await.unwrap(), Some(5));
    assert_eq!(go(&setup, &blue, 2).await.unwrap(), Some(1));
}

/// A new holder of either namespace starts while the other one has a transaction open.
async fn a_namespace_waits_for_no_transaction_of_another<DB: TestDb>(setup: Setup<DB>) {
    if DB::NAME == "SQLite" {
        // It has one lock for all rows.
        return;
    }
    let (blue, green) = (shard(&setup, "blue", 10).await, shard(&setup, "green", 20).await);
    go(&setup, &blue, 1).await.unwrap();
    go(&setup, &green, 1).await.unwrap();
    for (open, other, generation) in
        [(&blue, "green", 20), (&green, "blue", 10), (&blue, "green", 30)]
    {
        let mut tx = setup.pool.begin().await.unwrap();
        open.guard(&mut tx).await.unwrap();
        let new = shard(&setup, other, generation).await;
        let ended = timeout(SOON, go(&setup, &new, 2)).await;
        ended.expect("it waits for nobody").unwrap();
        tx.rollback().await.unwrap();
    }
}
