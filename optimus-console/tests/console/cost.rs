//! What the pages cost Redis, at 1,000 queues with 100,000 tasks: the least of five times, since
//! another program may have had the processor. This prints it: `cargo test -p
//! optimus-tasks-console --test console cost -- --ignored --nocapture`.

use std::{collections::BTreeMap, time::Duration};

use optimus::{Client, TaskId};
use optimus_console::{Console, ConsoleListener};
use optimus_testkit::RedisServer;
use redis::aio::MultiplexedConnection;

use crate::{client::Browser, stage::call};

const QUEUES: usize = 1_000;
const TASKS: usize = 100_000;
/// How often each page is asked for.
const TIMES: u32 = 5;

/// Returns the calls and µs of each command so far.
async fn spent(admin: &mut MultiplexedConnection) -> BTreeMap<String, (u64, u64)> {
    let info: String = redis::cmd("INFO").arg("commandstats").query_async(admin).await.unwrap();
    let number = |text: &str, name: &str| -> u64 {
        let found = text.split(',').find_map(|pair| pair.strip_prefix(name));
        found.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    info.lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'))
        .filter(|(name, _)| !matches!(*name, "info" | "config|get"))
        .map(|(name, rest)| (name.to_owned(), (number(rest, "calls="), number(rest, "usec="))))
        .collect()
}

/// Scripts are counted once: their commands are counted within them, too.
fn difference(
    before: &BTreeMap<String, (u64, u64)>,
    after: &BTreeMap<String, (u64, u64)>,
) -> (u64, u64) {
    let outside = ["evalsha", "eval", "zrange", "hmget", "smembers", "time", "get"];
    let mut sum = (0, 0);
    for (name, (calls, usec)) in after {
        let (calls_before, usec_before) = before.get(name).copied().unwrap_or_default();
        if outside.contains(&name.as_str()) {
            sum.0 += calls - calls_before;
            sum.1 += usec - usec_before;
        }
    }
    sum
}

async fn fill(client: &Client) -> TaskId {
    let mut first = None;
    for queue in 0..QUEUES {
        let name = format!("queue-{queue}");
        let calls: Vec<_> = (0..TASKS / QUEUES).map(|_| call("x").queue(&*name)).collect();
        let handles = client.submit_all(calls).await.unwrap();
        first.get_or_insert_with(|| handles[0].id().clone());
    }
    first.unwrap()
}

#[ignore = "it takes a minute, and prints numbers"]
#[tokio::test(flavor = "multi_thread")]
async fn each_page_is_printed_with_its_commands_and_the_time_of_redis() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    let id = fill(&client).await;
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    let mut admin = redis.admin().await;
    let (mut least, mut calls) = (u64::MAX, 0);
    for _ in 0..TIMES {
        // A read is shown for 5 s.
        tokio::time::sleep(Duration::from_millis(5_100)).await;
        let before = spent(&mut admin).await;
        browser.look("overview").await;
        let (now, usec) = difference(&before, &spent(&mut admin).await);
        (least, calls) = (least.min(usec), now);
    }
    println!("\n{:<44} {calls:>6} commands {least:>7} µs", "a read of all queues (each 5 s)");
    for path in [
        "session".to_owned(),
        "overview".into(),
        "queues?sort=oldest".into(),
        "queues/queue-7".into(),
        "queues/queue-7/tasks".into(),
        "queues/queue-7/tasks?text=nothing".into(),
        "queues/queue-7/stats".into(),
        "queues/queue-7/history".into(),
        format!("tasks/{id}"),
        "failures".into(),
        "processes".into(),
        "running".into(),
        format!("search?q={}", id.to_string().split('/').nth(1).unwrap()),
        "search?q=no-such-thing".into(),
        "lanes".into(),
        "limits".into(),
        "schedules".into(),
        "stats?unit=hour&last=24".into(),
        "audit".into(),
    ] {
        let (mut least, mut calls) = (u64::MAX, 0);
        for _ in 0..TIMES {
            // The shared read is not a part of the page.
            browser.look("overview").await;
            let before = spent(&mut admin).await;
            browser.look(&path).await;
            let (now, usec) = difference(&before, &spent(&mut admin).await);
            least = least.min(usec);
            calls = now;
        }
        println!("{path:<44} {calls:>6} commands {least:>7} µs");
    }
    serving.abort();
}
