//! What the pages cost Redis and the console, with 1,000 queues.

mod fill;
mod meter;

use std::time::Duration;

use optimus::Client;
use optimus_console::{Console, ConsoleListener};
use optimus_testkit::RedisServer;

use self::{
    fill::{Known, fill, name_of},
    meter::{Cost, Meter},
};
use crate::client::Browser;

/// Workers may say that they live while pages are asked for.
const BESIDE: u64 = 5;

/// The most commands of a read of all queues, from the second one on.
const READ_MAX: u64 = 5_200;

/// Returns the pages, and the most commands that Redis may run for one of them.
fn pages(known: &Known) -> Vec<(String, u64)> {
    let queue = name_of(0);
    let of_queue = |rest: &str| format!("queues/{queue}{rest}");
    let uuid = known.ready.to_string().split('/').nth(1).unwrap().to_owned();
    [
        ("session".to_owned(), BESIDE),
        ("overview".into(), BESIDE),
        ("queues?sort=oldest".into(), BESIDE),
        (of_queue(""), 100),
        (of_queue("/tasks"), 300),
        (of_queue("/tasks?state=dead"), 300),
        (of_queue("/tasks?state=delayed"), 300),
        (of_queue("/tasks?state=success"), 300),
        (of_queue("/tasks?text=nothing"), 90),
        (of_queue("/stats"), 20),
        (of_queue("/stats?unit=hour&last=336"), 20),
        (of_queue("/history"), 300),
        (format!("tasks/{}", known.ready), 60),
        (format!("tasks/{}", known.dead), 60),
        ("failures".into(), BESIDE),
        ("processes".into(), 60),
        ("running".into(), 60),
        (format!("search?q={uuid}"), 3_100),
        ("search?q=no-such-thing".into(), 2_100),
        ("lanes".into(), 1_000),
        ("limits".into(), 1_000),
        ("groups".into(), 1_000),
        ("schedules".into(), 1_000),
        ("shards".into(), 20),
        ("sources".into(), 20),
        ("dispensers".into(), 20),
        ("operations".into(), 300),
        ("stats".into(), BESIDE),
        ("stats?unit=hour&last=24".into(), BESIDE),
        ("stats?unit=day&last=180".into(), BESIDE),
        ("redis".into(), 20),
        ("audit".into(), 60),
    ]
    .into()
}

/// Asks for each page, prints its costs, and fails if Redis runs more commands than it may.
async fn measure(tasks: usize, dead: usize) {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    let known = fill(&redis, &client, tasks, dead).await;
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    let mut meter = Meter::new(&redis, browser).await;
    let memory = meter.memory().await;
    println!("\n{tasks} tasks in {} queues, {memory}\n{}", fill::QUEUES, Cost::HEADING);
    let (read, mut above) = (meter.cost_of_reads().await, Vec::new());
    println!("{}", read.row("the read of all queues, each 5 s"));
    if read.commands > READ_MAX {
        above.push(format!("the read of all queues: {} commands", read.commands));
    }
    for (path, most) in pages(&known) {
        let first = meter.first(&path).await;
        let later = meter.later(&path).await;
        println!("{} {}", later.row(&path), first.short());
        if later.commands > most {
            above.push(format!("{path}: {} commands, and {most} are allowed", later.commands));
        }
        if later.redis > Duration::from_millis(20) || later.server > Duration::from_secs(1) {
            above.push(format!("{path}: {}", later.row("")));
        }
    }
    assert!(above.is_empty(), "{above:#?}");
    serving.abort();
}

/// `cargo test --release -p optimus-tasks-console --test console cost::at_10_000_000 -- --ignored
/// --nocapture` prints the table of `docs/BENCHMARKS.md`.
#[ignore = "it takes minutes and 6 GB of memory, and prints numbers"]
#[tokio::test(flavor = "multi_thread")]
async fn at_10_000_000_tasks_each_page_costs_redis_a_bounded_number_of_commands() {
    measure(10_000_000, 10_000).await;
}

#[ignore = "it takes a minute, and prints numbers"]
#[tokio::test(flavor = "multi_thread")]
async fn at_100_000_tasks_each_page_costs_redis_a_bounded_number_of_commands() {
    measure(100_000, 1_000).await;
}
