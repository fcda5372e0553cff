//! Redis demands a password that a relay does not have.

use optimus_sql::{PerformInTx as _, lag};
use optimus_testkit::{RedisServer, eventually};

use crate::{
    databases::TestDb,
    setup::{SOON, Setup, note},
};

const CALLS: u32 = 20;
/// After so many refusals, a relay has tried to submit.
const REFUSALS: u64 = 40;

crate::on_each_database! { calls_wait_until_redis_accepts_the_relay_again }

async fn calls_wait_until_redis_accepts_the_relay_again<DB: TestDb>(setup: Setup<DB>) {
    let server = RedisServer::start();
    let setup = setup.moved_to(&server).await;
    let relay = setup.start_relay().await;
    setup.commit(0).await;
    setup.all_relayed().await;
    let mut admin = server.admin().await;
    let mut run = async |words: &[&str]| -> redis::Value {
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut admin).await.unwrap()
    };
    run(&["CONFIG", "SET", "requirepass", "sesame"]).await;
    run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;

    let before = refusals(run(&["INFO", "stats"]).await);
    for number in 1..CALLS {
        let mut tx = setup.pool.begin().await.unwrap();
        note(1, number).perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }
    eventually("the relay is refused", SOON, async || {
        refusals(run(&["INFO", "stats"]).await) >= before + REFUSALS
    })
    .await;
    let found = lag(&setup.pool).await.unwrap();
    assert_eq!((found.rows, found.parked), (u64::from(CALLS) - 1, 0), "{found:?}");

    run(&["CONFIG", "SET", "requirepass", ""]).await;
    setup.all_relayed().await;
    assert_eq!(lag(&setup.pool).await.unwrap().parked, 0);
    relay.stop().await;
}

fn refusals(stats: redis::Value) -> u64 {
    let text: String = redis::from_redis_value(stats).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("total_error_replies:"));
    line.unwrap().trim().parse().unwrap()
}
