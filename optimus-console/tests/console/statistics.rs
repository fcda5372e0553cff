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

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_in_a_queue_between_its_first_two_reads_is_in_the_line_and_in_the_rate() {
    let stage = Stage::new().await;
    let served = stage.open();
    let first = served.browser.look("overview").await;
    assert_eq!(first["series"], serde_json::json!([]), "one read has no difference");
    stage.ended(["sent", "sent", "fail: no route"]).await;
    eventually("the end of the tasks is read", SOON, async || {
        let page = served.browser.look("overview").await;
        let points = page["series"].as_array().unwrap();
        let sum = |of: &str| points.iter().map(|point| point[of].as_u64().unwrap()).sum::<u64>();
        let rate = |of: &str| page["rates"][of].as_f64().unwrap();
        assert_eq!(sum("success") > 0, rate("success_s") > 0.0, "{page}");
        assert_eq!(sum("dead") > 0, rate("dead_s") > 0.0, "{page}");
        (sum("success"), sum("dead")) == (2, 1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_had_ended_before_a_queue_could_be_read_is_not_in_the_line() {
    let stage = Stage::new().await;
    stage.ended(["sent", "sent"]).await;
    let client = redis::Client::open(stage.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let key = |name: &str| format!("{{{}:mail:0}}:{name}", stage.namespace);
    redis::cmd("SET").arg(key("ready")).arg("x").query_async::<()>(&mut admin).await.unwrap();
    let served = stage.open();
    let first = served.browser.look("overview").await;
    assert!(first["attention"].to_string().contains("WRONGTYPE"), "{first}");
    redis::cmd("DEL").arg(key("ready")).query_async::<()>(&mut admin).await.unwrap();
    eventually("the queue is read", SOON, async || {
        let page = served.browser.look("overview").await;
        let points = page["series"].as_array().unwrap();
        assert!(points.iter().all(|point| point["success"] == 0), "{page}");
        !points.is_empty() && page["attention"][0]["problem"].is_null()
    })
    .await;
}
