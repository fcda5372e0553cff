//! Settings that an administrator of MySQL has made those of all sessions: the relay works with
//! each of them.

use optimus_sql::{Relay, submit_all_in_tx};
use optimus_testkit::{FaultProxy, Way};
use sqlx::{Executor as _, MySql, Pool, pool::PoolOptions};

use crate::setup::{Seen, Setup, connect, note};

const CALLS: u32 = 30;

/// A pool whose sessions have a setting.
async fn pool_with(setup: &Setup<MySql>, setting: &'static str) -> Pool<MySql> {
    let options = PoolOptions::<MySql>::new().after_connect(move |connection, _| {
        Box::pin(async move { connection.execute(setting).await.map(drop) })
    });
    options.connect(&setup.database).await.unwrap()
}

fn in_order(count: u32) -> Vec<(u32, u32)> {
    (0..count).map(|number| (1, number)).collect()
}

async fn two_relays_work_with(setting: &'static str) {
    let (setup, seen) = (Setup::<MySql>::start().await, Seen::default());
    let _worker = setup.start_worker(&seen);
    let pools = [pool_with(&setup, setting).await, pool_with(&setup, setting).await];
    let mut relays = Vec::new();
    for pool in &pools {
        relays.push(Relay::new(pool, &setup.client).start().await.unwrap());
    }
    for number in 0..CALLS {
        setup.commit(number).await;
    }
    seen.has(CALLS as usize).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), in_order(CALLS));
    // An idle relay keeps nobody from changing the table.
    let alter = "SET lock_wait_timeout = 20; ALTER TABLE optimus_outbox ADD COLUMN more bigint";
    setup.sql(alter).await;
    for relay in relays {
        relay.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_work_without_autocommit() {
    two_relays_work_with("SET SESSION autocommit = 0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_work_with_safe_updates() {
    two_relays_work_with("SET SESSION sql_safe_updates = 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_work_where_a_commit_begins_the_next_transaction() {
    two_relays_work_with("SET SESSION completion_type = 'CHAIN'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_work_with_the_words_of_another_database() {
    two_relays_work_with("SET SESSION sql_mode = 'ORACLE'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_repeats_nothing_where_reads_are_limited() {
    let (setup, seen) = (Setup::<MySql>::start().await, Seen::default());
    let _worker = setup.start_worker(&seen);
    let proxy = FaultProxy::start(&setup.redis).await;
    let relay = setup.relay_of(&connect(&proxy.url(), &setup.namespace).await).await;
    setup.commit(0).await;
    setup.all_relayed().await;
    // Redis has the next batch, and this relay does not learn it.
    proxy.black_hole(Way::Down);
    let mut tx = setup.pool.begin().await.unwrap();
    submit_all_in_tx(&mut tx, (1..CALLS).map(|number| note(1, number))).await.unwrap();
    tx.commit().await.unwrap();
    seen.has(CALLS as usize).await;
    relay.kill();
    let pool = pool_with(&setup, "SET SESSION sql_select_limit = 10").await;
    let next = Relay::new(&pool, &setup.client).start().await.unwrap();
    setup.all_relayed().await;
    setup.commit(CALLS).await;
    seen.has(CALLS as usize + 1).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), in_order(CALLS + 1));
    next.stop().await;
}
