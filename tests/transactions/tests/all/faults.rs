//! The crashes and races of a relay, one by one: each row of the table in
//! docs/guides/transactions.md.

use optimus_core::{BoxError, Context, Durability, Task};
use optimus_sql::{PerformInTx as _, lag, list_parked, submit_all_in_tx};
use optimus_testkit::{FaultProxy, RedisServer, Way, eventually};
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, connect, note, run_worker},
};

crate::on_each_database! {
    a_batch_that_was_noted_and_not_pushed_is_pushed_by_the_next_relay
    a_batch_that_was_pushed_and_not_deleted_is_not_pushed_twice
    a_reply_that_is_lost_repeats_nothing
    several_relays_repeat_nothing_and_keep_the_order
    a_database_from_an_older_backup_loses_nothing
    a_database_whose_last_batch_is_another_one_loses_nothing
    redis_that_is_away_delays_calls
    redis_that_is_full_delays_calls
    calls_that_wait_survive_a_flush
    a_relay_that_was_cut_off_during_a_flush_repeats_nothing
    a_queue_that_refuses_does_not_stop_others
    a_row_that_is_deleted_by_hand_stops_nothing
}

/// Commits these numbers, each in a transaction of its own.
async fn commit<DB: TestDb>(setup: &Setup<DB>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        let mut tx = setup.pool.begin().await.unwrap();
        note(1, number).perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Returns which calls ran after `count` did, and asserts that no more come.
async fn ran<DB: TestDb>(setup: &Setup<DB>, seen: &Seen, count: u32) {
    seen.has(count as usize).await;
    setup.all_relayed().await;
    let expected: Vec<_> = (0..count).map(|number| (1, number)).collect();
    assert_eq!(seen.all(), expected);
}

/// The content of the stream and of the outbox, as a backup has it.
const BACKUP: &str = "CREATE TABLE saved_stream AS SELECT * FROM optimus_stream; \
                      CREATE TABLE saved_outbox AS SELECT queue, id, body FROM optimus_outbox";
const RESTORE: &str = "DELETE FROM optimus_stream; \
                       INSERT INTO optimus_stream SELECT * FROM saved_stream; \
                       DELETE FROM optimus_outbox; \
                       INSERT INTO optimus_outbox (queue, id, body) \
                       SELECT queue, id, body FROM saved_outbox";

async fn a_batch_that_was_noted_and_not_pushed_is_pushed_by_the_next_relay<DB: TestDb>(
    setup: Setup<DB>,
) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let proxy = FaultProxy::start(&server.url()).await;
    let client = connect(&proxy.url(), &setup.namespace).await;
    proxy.black_hole(Way::Up);
    let relay = setup.relay_of(&client).await;
    commit(&setup, 0..3).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    relay.kill();
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let next = setup.start_relay().await;
    ran(&setup, &seen, 3).await;
    next.stop().await;
}

async fn a_batch_that_was_pushed_and_not_deleted_is_not_pushed_twice<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let proxy = FaultProxy::start(&setup.redis).await;
    let client = connect(&proxy.url(), &setup.namespace).await;
    let relay = setup.relay_of(&client).await;
    commit(&setup, 0..1).await;
    ran(&setup, &seen, 1).await;
    // Replies do not arrive any more, so the relay pushes and does not delete.
    proxy.black_hole(Way::Down);
    commit(&setup, 1..4).await;
    seen.has(2).await;
    relay.kill();
    let next = setup.start_relay().await;
    ran(&setup, &seen, 4).await;
    next.stop().await;
}

async fn a_reply_that_is_lost_repeats_nothing<DB: TestDb>(setup: Setup<DB>) {
    let proxy = FaultProxy::start(&setup.redis).await;
    let client = connect(&proxy.url(), &setup.namespace).await;
    let relay = setup.relay_of(&client).await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    for round in 0..5 {
        proxy.drop_reply(1);
        commit(&setup, [round]).await;
        seen.has(round as usize + 1).await;
    }
    ran(&setup, &seen, 5).await;
    relay.kill();
}

async fn several_relays_repeat_nothing_and_keep_the_order<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let mut relays = Vec::new();
    for _ in 0..4 {
        relays.push(setup.start_relay().await);
    }
    commit(&setup, 0..150).await;
    ran(&setup, &seen, 150).await;
    for relay in relays {
        relay.stop().await;
    }
}

/// The backup is much older, so its numbers are those of batches that the ledger has forgotten.
async fn a_database_from_an_older_backup_loses_nothing<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let relay = setup.start_relay().await;
    for number in 0..40 {
        if number == 1 {
            setup.all_relayed().await;
            setup.sql(BACKUP).await;
        }
        commit(&setup, [number]).await;
        seen.has(number as usize + 1).await;
    }
    setup.all_relayed().await;
    relay.stop().await;
    setup.sql(RESTORE).await;
    let relay = setup.start_relay().await;
    commit(&setup, 40..60).await;
    // The calls of the time after the backup are not in it.
    ran(&setup, &seen, 60).await;
    relay.stop().await;
}

/// The backup is one batch old, so its next batch has the number of one that Redis has.
async fn a_database_whose_last_batch_is_another_one_loses_nothing<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    for round in 0..8 {
        let relay = setup.start_relay().await;
        commit(&setup, [2 * round]).await;
        seen.has(2 * round as usize + 1).await;
        setup.all_relayed().await;
        relay.stop().await;
        // The same numbers will be given to other calls.
        setup.sql(if round == 0 { BACKUP } else { "SELECT 1" }).await;
        setup.sql(RESTORE).await;
        let relay = setup.start_relay().await;
        commit(&setup, [2 * round + 1]).await;
        seen.has(2 * round as usize + 2).await;
        setup.all_relayed().await;
        relay.stop().await;
    }
    ran(&setup, &seen, 16).await;
}

async fn redis_that_is_away_delays_calls<DB: TestDb>(setup: Setup<DB>) {
    let mut server = RedisServer::builder().appendonly_always().start();
    let setup = setup.moved_to(&server).await;
    let relay = setup.start_relay().await;
    commit(&setup, 0..1).await;
    setup.all_relayed().await;
    server.kill();
    commit(&setup, 1..5).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    let waits = lag(&setup.pool).await.unwrap();
    assert!(waits.rows == 4 && waits.oldest.is_some_and(|age| age < SOON), "{waits:?}");
    server.restart();
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    ran(&setup, &seen, 5).await;
    relay.stop().await;
}

async fn redis_that_is_full_delays_calls<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let relay = setup.start_relay().await;
    let mut raw = redis_of(&server).await;
    set_maxmemory(&mut raw, "1mb").await;
    commit(&setup, 0..4).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    eventually("Redis has refused it", SOON, async || has_refused(&mut raw).await).await;
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 4);
    set_maxmemory(&mut raw, "0").await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    ran(&setup, &seen, 4).await;
    relay.stop().await;
}

async fn redis_of(server: &RedisServer) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn set_maxmemory(raw: &mut redis::aio::MultiplexedConnection, bytes: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory").arg(bytes).query_async::<()>(raw).await.unwrap();
}

/// Returns whether a call was refused because the memory is full.
async fn has_refused(raw: &mut redis::aio::MultiplexedConnection) -> bool {
    let info: String = redis::cmd("INFO").arg("errorstats").query_async(raw).await.unwrap();
    info.contains("errorstat_OOM")
}

async fn calls_that_wait_survive_a_flush<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let relay = setup.start_relay().await;
    let mut raw = redis_of(&server).await;
    let seen = Seen::default();
    let worker = setup.start_worker(&seen);
    for number in 0..20 {
        commit(&setup, [number]).await;
        seen.has(number as usize + 1).await;
        setup.all_relayed().await;
    }
    drop(worker);
    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await.unwrap();
    commit(&setup, 20..40).await;
    let _worker = setup.start_worker(&seen);
    ran(&setup, &seen, 40).await;
    relay.stop().await;
}

/// It has noted a batch that another relay has pushed and deleted. Then Redis loses its ledger.
async fn a_relay_that_was_cut_off_during_a_flush_repeats_nothing<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let proxy = FaultProxy::start(&server.url()).await;
    let client = connect(&proxy.url(), &setup.namespace).await;
    let seen = Seen::default();
    let worker = setup.start_worker(&seen);
    let cut_off = setup.relay_of(&client).await;
    commit(&setup, 0..1).await;
    ran(&setup, &seen, 1).await;
    proxy.black_hole(Way::Up);
    commit(&setup, 1..3).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    let next = setup.start_relay().await;
    ran(&setup, &seen, 3).await;
    drop(worker);
    let mut raw = redis_of(&server).await;
    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await.unwrap();
    next.stop().await;
    proxy.pass();
    // A later call shows that the relay has passed what it remembers.
    commit(&setup, 3..4).await;
    let _worker = setup.start_worker(&seen);
    ran(&setup, &seen, 4).await;
    cut_off.kill();
}

async fn a_queue_that_refuses_does_not_stop_others<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let mut raw = redis_of(&server).await;
    // A key of another type refuses each call of its queue.
    let key = format!("{{{}:other:0}}:tasks", setup.namespace);
    redis::cmd("SET").arg(&key).arg("x").query_async::<()>(&mut raw).await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    let calls = (0..5).flat_map(|number| [note(2, number).queue("other"), note(1, number)]);
    submit_all_in_tx(&mut tx, calls).await.unwrap();
    tx.commit().await.unwrap();
    let relay = setup.start_relay().await;
    setup.all_relayed().await;
    let parked = list_parked(&setup.pool, 0).await.unwrap();
    assert_eq!(parked.len(), 5, "each alone, after halving: {parked:?}");
    assert!(parked.iter().all(|one| one.error.contains("WRONGTYPE")), "{parked:?}");
    let seen = Seen::default();
    let _worker = run_worker(setup.worker(&seen).queues(["default"]).concurrency(1));
    ran(&setup, &seen, 5).await;
    relay.stop().await;
}

async fn a_row_that_is_deleted_by_hand_stops_nothing<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let relay = setup.start_relay().await;
    let mut raw = redis_of(&server).await;
    set_maxmemory(&mut raw, "1mb").await;
    commit(&setup, 5..6).await;
    commit(&setup, 0..2).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    relay.stop().await;
    setup.sql("DELETE FROM optimus_outbox WHERE seq = 1").await;
    set_maxmemory(&mut raw, "0").await;
    let relay = setup.start_relay().await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    ran(&setup, &seen, 2).await;
    relay.stop().await;
}

/// A transaction that has drawn a low number, and commits after the relay has read later ones.
async fn calls_pass_a_long_transaction<DB: TestDb>() {
    let setup = Setup::<DB>::start().await;
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut long = setup.pool.begin().await.unwrap();
    note(9, 9).perform_in_tx(&mut long).await.unwrap();
    for number in 0..30 {
        commit(&setup, [number]).await;
        seen.has(number as usize + 1).await;
    }
    // A batch of several, which the relay deletes together before it reads what follows.
    let mut tx = setup.pool.begin().await.unwrap();
    let calls = (30..60).map(|number| note(1, number));
    submit_all_in_tx(&mut tx, calls).await.unwrap();
    tx.commit().await.unwrap();
    seen.has(60).await;
    commit(&setup, [60]).await;
    seen.has(61).await;
    long.commit().await.unwrap();
    seen.has(62).await;
    setup.all_relayed().await;
    assert_eq!(seen.all()[61], (9, 9));
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_pass_a_long_transaction_of_postgres() {
    calls_pass_a_long_transaction::<Postgres>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_pass_a_long_transaction_of_mariadb() {
    calls_pass_a_long_transaction::<MySql>().await;
}

#[derive(Serialize, Deserialize)]
struct Unconfirmed {}

impl Task for Unconfirmed {
    const NAME: &'static str = "unconfirmed";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A server without a replica can't confirm, so nothing is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_stay_in_the_database_until_redis_has_confirmed_them() {
    let setup = Setup::<Sqlite>::start().await;
    let relay = setup.relay().durability(Durability::Replicated(1)).start().await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    let promised = Unconfirmed {}.call().perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let stored = async || setup.client.inspector().get(promised.id()).await.unwrap().is_some();
    eventually("Redis has it", SOON, stored).await;
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 1);
    relay.stop().await;
    let relay = setup.start_relay().await;
    setup.all_relayed().await;
    relay.stop().await;
}
