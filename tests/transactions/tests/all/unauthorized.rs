//! Redis demands a password that a relay does not have, or its user lacks a permission.

use optimus_core::{Client, Durability};
use optimus_sql::{PerformInTx as _, Relay, lag};
use optimus_testkit::{RedisServer, eventually};
use sqlx::Sqlite;

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

/// Redis stops a script at the first command that its user may not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_until_the_user_of_the_relay_has_all_permissions() {
    for durability in [Durability::Memory, Durability::Replicated(1)] {
        let server = RedisServer::builder().tcp().start();
        let setup = Setup::<Sqlite>::start().await.moved_to(&server).await;
        let mut admin = server.admin().await;
        let mut allow = async |rule: &str| {
            let mut set = redis::cmd("ACL");
            set.arg(&["SETUSER", "relay", "on", ">secret", "~*", "+@all", rule]);
            set.query_async::<()>(&mut admin).await.unwrap();
        };
        allow("-rpush").await;
        let url = server.url().replace("redis://", "redis://relay:secret@");
        let client = Client::builder(&url).namespace(&setup.namespace).durability(durability);
        let client = client.connect().await.unwrap();
        for number in 0..CALLS {
            setup.commit(number).await;
        }
        let relay = Relay::new(&setup.pool, &client).start().await.unwrap();
        let mut calls = server.admin().await;
        eventually("the relay has tried", SOON, async || {
            let stats = redis::cmd("INFO").arg("stats").query_async(&mut calls).await.unwrap();
            refusals(stats) >= REFUSALS
        })
        .await;
        let found = lag(&setup.pool).await.unwrap();
        assert_eq!((found.rows, found.parked), (u64::from(CALLS), 0), "{durability:?}: {found:?}");
        allow("+rpush").await;
        let ready = async || setup.client.inspector().counts("default").await.unwrap().ready;
        eventually("the calls go on", SOON, async || ready().await == u64::from(CALLS)).await;
        // Without a replica, nothing is confirmed.
        if durability == Durability::Memory {
            setup.all_relayed().await;
        }
        assert_eq!(lag(&setup.pool).await.unwrap().parked, 0, "{durability:?}");
        relay.stop().await;
    }
}

fn refusals(stats: redis::Value) -> u64 {
    let text: String = redis::from_redis_value(stats).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("total_error_replies:"));
    line.unwrap().trim().parse().unwrap()
}
