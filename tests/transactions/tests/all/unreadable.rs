//! Rows of a noted batch that the next relay would not have noted: none is lost.

use optimus_core::{BoxError, Client, Context, Task};
use optimus_sql::{PerformInTx as _, lag, list_parked, retry_parked, submit_all_in_tx};
use optimus_testkit::{FaultProxy, RedisServer, Way, eventually};
use serde::{Deserialize, Serialize};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup, note, run_worker},
};

crate::on_each_database! {
    a_noted_call_that_is_larger_than_the_next_relay_allows_is_submitted
    a_noted_row_that_is_damaged_is_put_aside
    poison_among_a_thousand_lanes_holds_nothing_up
}

const LIMIT: usize = 8 << 20;

#[derive(Serialize, Deserialize)]
struct Large {
    text: String,
}

impl Task for Large {
    const NAME: &'static str = "large";
    type Output = usize;

    async fn run(self, _: Context) -> Result<usize, BoxError> {
        Ok(self.text.len())
    }
}

async fn with_limit(redis: &str, namespace: &str) -> Client {
    let builder = Client::builder(redis).namespace(namespace).payload_limit(LIMIT);
    builder.connect().await.unwrap()
}

async fn a_noted_call_that_is_larger_than_the_next_relay_allows_is_submitted<DB: TestDb>(
    setup: Setup<DB>,
) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let proxy = FaultProxy::start(&server.url()).await;
    let relay = setup.relay_of(&with_limit(&proxy.url(), &setup.namespace).await).await;
    proxy.black_hole(Way::Up);
    let app = with_limit(&server.url(), &setup.namespace).await;
    let mut tx = setup.pool.begin().await.unwrap();
    let call = Large { text: "x".repeat(3 << 20) }.call();
    let large = app.scope(call.perform_in_tx(&mut tx)).await.unwrap();
    note(1, 0).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    relay.kill();
    let seen = Seen::default();
    let _worker = run_worker(setup.worker(&seen).task_type::<Large>());
    let next = setup.start_relay().await;
    setup.all_relayed().await;
    assert_eq!(large.handle(&app).result_within(SOON).await.unwrap(), 3 << 20);
    seen.has(1).await;
    next.stop().await;
}

async fn a_noted_row_that_is_damaged_is_put_aside<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let proxy = FaultProxy::start(&server.url()).await;
    let client = crate::setup::connect(&proxy.url(), &setup.namespace).await;
    let relay = setup.relay_of(&client).await;
    proxy.black_hole(Way::Up);
    let mut tx = setup.pool.begin().await.unwrap();
    for (writer, number) in [(1, 0), (9, 9), (1, 1)] {
        note(writer, number).perform_in_tx(&mut tx).await.unwrap();
    }
    tx.commit().await.unwrap();
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    relay.kill();
    setup.sql("UPDATE optimus_outbox SET id = REPLACE(id, '-', 'x') WHERE seq = 2").await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let next = setup.start_relay().await;
    setup.all_relayed().await;
    seen.has(2).await;
    let parked = list_parked(&setup.pool, 0).await.unwrap();
    assert_eq!((parked.len(), parked[0].seq), (1, 2), "{parked:?}");
    assert!(parked[0].error.contains("may be submitted"), "{parked:?}");
    // Once it is repaired, it is submitted as well.
    setup.sql("UPDATE optimus_outbox SET id = REPLACE(id, 'x', '-') WHERE seq = 2").await;
    assert!(retry_parked(&setup.pool, 2).await.unwrap());
    seen.has(3).await;
    assert_eq!(seen.all(), [(1, 0), (1, 1), (9, 9)]);
    next.stop().await;
}

const LANES: u32 = 1_000;
const CALLS: u32 = 3_000;
/// Every call of these lanes is refused by Redis.
const SHUT: [u32; 3] = [7, 500, 999];

/// Damaged rows and calls that Redis refuses, among calls of many lanes.
async fn poison_among_a_thousand_lanes_holds_nothing_up<DB: TestDb>(setup: Setup<DB>) {
    let client = redis::Client::open(&*setup.redis).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    for lane in SHUT {
        // A key of another type.
        let key = format!("{{{}:default:0}}:lane:lane-{lane}", setup.namespace);
        redis::cmd("SET").arg(&key).arg("x").query_async::<()>(&mut raw).await.unwrap();
    }
    let mut tx = setup.pool.begin().await.unwrap();
    let calls =
        (0..CALLS).map(|at| note(at % LANES, at / LANES).lane(format!("lane-{}", at % LANES)));
    submit_all_in_tx(&mut tx, calls).await.unwrap();
    tx.commit().await.unwrap();
    setup.sql("UPDATE optimus_outbox SET id = REPLACE(id, '-', 'x') WHERE seq % 97 = 5").await;
    let damaged = "SELECT COUNT(*) FROM optimus_outbox WHERE id LIKE '%x%'";
    let damaged = DB::number(&setup.pool, damaged).await;
    let relay = setup.start_relay().await;
    let seen = Seen::default();
    let _worker = run_worker(setup.worker(&seen).concurrency(20));
    setup.all_relayed().await;
    let parked = lag(&setup.pool).await.unwrap().parked;
    let stays = i64::try_from(parked).unwrap();
    let parked = usize::try_from(parked).unwrap();
    assert!(stays >= damaged + 6 && stays <= damaged + 9, "{stays} of {damaged} damaged");
    seen.has(CALLS as usize - parked).await;
    let mut last = std::collections::HashMap::new();
    for (lane, number) in seen.all() {
        assert!(!SHUT.contains(&lane));
        let before = last.insert(lane, number);
        assert!(before < Some(number), "lane {lane}: {before:?}, {number}");
    }
    relay.stop().await;
}
