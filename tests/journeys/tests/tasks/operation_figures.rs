//! What an operation over 100,000 tasks costs Redis, and how long others wait beside it.

use std::time::Duration;

use crate::{
    common::Bench,
    operations::{Die, Runs, SOON, all, count, counted},
};
use optimus_core::{OperationAct, Task, TaskState};
use optimus_testkit::{RedisServer, eventually};

/// Returns how often the server was called, and how many µs its commands took, without those that
/// scripts call.
async fn spent(bench: &Bench) -> (u64, u64) {
    let stats = String::from_utf8(bench.raw().await.run("INFO commandstats").await.remove(0));
    let stats = stats.unwrap();
    let outer = ["evalsha", "eval", "zrange", "smembers", "hmget"];
    let lines = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
    let lines = lines.filter(|(name, _)| outer.contains(name));
    let number = |text: &str, name: &str| {
        let value = text.split(',').find_map(|part| part.strip_prefix(name));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    lines.fold((0, 0), |(calls, us), (_, text)| {
        (calls + number(text, "calls="), us + number(text, "usec="))
    })
}

/// Returns how long small calls take until `stop`: the median and the 99th percentile, in µs.
async fn probe(bench: &Bench, stop: impl Fn() -> bool) -> (u128, u128) {
    let (mut took, mut raw) = (Vec::new(), bench.raw().await);
    while !stop() || took.len() < 500 {
        let begun = std::time::Instant::now();
        raw.run("GET nothing").await;
        took.push(begun.elapsed().as_micros());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    took.sort_unstable();
    (took[took.len() / 2], took[took.len() * 99 / 100])
}

/// `cargo test -p optimus-journeys --test tasks -- --ignored --nocapture operation_figures`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it prints figures"]
async fn figures() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let tasks = 100_000;
    for (act, state) in [
        (OperationAct::Requeue, TaskState::Dead),
        (OperationAct::Cancel, TaskState::Ready),
        (OperationAct::Delete, TaskState::Cancelled),
    ] {
        if state == TaskState::Dead {
            let runs = Runs::default();
            let calls = (0..tasks).map(|number| Die { number }.call());
            bench.client.submit_all(calls).await.unwrap();
            let worker = bench.worker().concurrency(256).data(runs).task_type::<Die>();
            let worker = bench.start(worker.keep_ended(200_000, SOON * 60));
            let all = u64::from(tasks);
            let are_dead = async || count(&bench, TaskState::Dead).await == all;
            eventually("all are dead", SOON * 5, are_dead).await;
            worker.stop().await;
        }
        let alone = probe(&bench, || true).await;
        let before = spent(&bench).await;
        let operation = counted(&bench, act, all(state)).await;
        let after = spent(&bench).await;
        let each = |from: u64, to: u64| f64::from(u32::try_from(to - from).unwrap()) / 1e5;
        println!(
            "count: {:.4} calls and {:.2} us a task",
            each(before.0, after.0),
            each(before.1, after.1)
        );
        let operations = bench.client.operations();
        operations.confirm(&operation.id, operation.matched, "").await.unwrap();
        let before = spent(&bench).await;
        let begun = std::time::Instant::now();
        let id = operation.id.clone();
        let carrying = tokio::spawn(async move { operations.carry(&id).await.unwrap() });
        let beside = probe(&bench, || carrying.is_finished()).await;
        let done = carrying.await.unwrap();
        let (after, took) = (spent(&bench).await, begun.elapsed());
        println!(
            "{act:?}: {} done in {took:?}; {:.4} calls and {:.2} us a task; a GET takes \
             {alone:?} us alone, {beside:?} us beside",
            done.done,
            each(before.0, after.0),
            each(before.1, after.1)
        );
    }
}
