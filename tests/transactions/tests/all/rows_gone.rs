//! Rows of a noted batch that somebody deletes by hand before the next relay goes on with it.

use optimus_core::{Call, Task as _};
use optimus_sql::{PerformInTx as _, Promised};
use optimus_testkit::{FaultProxy, Way, eventually};

use crate::{
    databases::TestDb,
    setup::{DoomedRelay, Double, SOON, Seen, Setup, connect, note},
};

crate::on_each_database! {
    a_call_between_others_is_deleted_after_redis_has_it
    a_call_that_another_repeats_is_deleted_after_redis_has_it
    a_call_is_deleted_before_redis_has_it
}

/// A relay that has noted three calls and knows nothing of what became of them. The third one
/// repeats the first one's biz id.
struct Noted {
    relay: DoomedRelay,
    first: Promised<i64>,
    third: Promised<i64>,
    _proxy: FaultProxy,
}

async fn note_three<DB: TestDb>(setup: &Setup<DB>, way: Way) -> Noted {
    let proxy = FaultProxy::start(&setup.redis).await;
    let relay = setup.relay_of(&connect(&proxy.url(), &setup.namespace).await).await;
    setup.commit(0).await;
    setup.all_relayed().await;
    proxy.black_hole(way);
    let unique = |number| -> Call<Double> { Double { number }.call().biz_id("x") };
    let mut tx = setup.pool.begin().await.unwrap();
    let first = unique(1).perform_in_tx(&mut tx).await.unwrap();
    note(1, 2).perform_in_tx(&mut tx).await.unwrap();
    let third = unique(3).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    Noted { relay, first, third, _proxy: proxy }
}

async fn redis_has<DB: TestDb>(setup: &Setup<DB>, tasks: u64) {
    let has = async || setup.client.inspector().counts("default").await.unwrap().ready == tasks;
    eventually("Redis has the batch", SOON, has).await;
}

/// The next relay goes on: the calls that are left and later ones run, each once.
async fn goes_on<DB: TestDb>(setup: &Setup<DB>, calls: [&Promised<i64>; 2], runs: &[(u32, u32)]) {
    let next = setup.start_relay().await;
    setup.commit(9).await;
    setup.all_relayed().await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    seen.has(runs.len()).await;
    for call in calls {
        assert_eq!(call.handle(&setup.client).result_within(SOON).await.unwrap(), 2);
    }
    assert_eq!(seen.all(), runs);
    next.stop().await;
}

/// Redis has the batch, and the relay does not know it.
async fn goes_on_after<DB: TestDb>(setup: Setup<DB>, delete: &'static str) {
    let Noted { relay, first, third, _proxy } = note_three(&setup, Way::Down).await;
    redis_has(&setup, 3).await;
    relay.kill();
    setup.sql(delete).await;
    goes_on(&setup, [&first, &third], &[(1, 0), (1, 2), (1, 9)]).await;
}

async fn a_call_between_others_is_deleted_after_redis_has_it<DB: TestDb>(setup: Setup<DB>) {
    goes_on_after(setup, "DELETE FROM optimus_outbox WHERE seq = 3").await;
}

async fn a_call_that_another_repeats_is_deleted_after_redis_has_it<DB: TestDb>(setup: Setup<DB>) {
    goes_on_after(setup, "DELETE FROM optimus_outbox WHERE seq = 2").await;
}

async fn a_call_is_deleted_before_redis_has_it<DB: TestDb>(setup: Setup<DB>) {
    let Noted { relay, first, third, _proxy } = note_three(&setup, Way::Up).await;
    relay.kill();
    setup.sql("DELETE FROM optimus_outbox WHERE seq = 3").await;
    goes_on(&setup, [&first, &third], &[(1, 0), (1, 9)]).await;
}
