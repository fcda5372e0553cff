//! What ended in all queues.

use optimus::Client;
use optimus_console::{Console, ConsoleListener};
use optimus_testkit::{RedisServer, eventually};
use redis::aio::MultiplexedConnection;

use crate::{
    client::Browser,
    stage::{SOON, Stage, call},
};

/// Returns how many commands have run, but those that this function sends.
async fn commands(admin: &mut MultiplexedConnection) -> u64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query_async(admin).await.unwrap();
    let of_others = info.lines().filter(|line| !line.starts_with("cmdstat_info:"));
    let calls = of_others.filter_map(|line| line.split_once("calls=")?.1.split(',').next());
    calls.map(|calls| calls.parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_ask_for_the_same_statistics_share_one_read() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    for queue in ["a", "b", "c"] {
        client.submit(call("x").queue(queue)).await.unwrap();
    }
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    let mut admin = redis.admin().await;
    // A round in which what was read gets too old has commands.
    eventually("a round of requests has no command", SOON, async || {
        browser.look("stats?last=30").await;
        let before = commands(&mut admin).await;
        for _ in 0..20 {
            assert_eq!(browser.look("stats?last=30").await["queues"], 3);
        }
        commands(&mut admin).await == before
    })
    .await;
    let before = commands(&mut admin).await;
    browser.look("stats?last=31").await;
    assert!(commands(&mut admin).await > before, "this is another time");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_that_are_too_old_are_read_again() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.open();
    let successes = |page: &serde_json::Value| -> u64 {
        let rows = page["rows"].as_array().unwrap().iter();
        rows.map(|row| row["success"].as_u64().unwrap()).sum()
    };
    assert_eq!(successes(&served.browser.look("stats").await), 0);
    stage.ended(["sent"]).await;
    eventually("both successes are counted", SOON, async || {
        successes(&served.browser.look("stats").await) == 2
    })
    .await;
}
