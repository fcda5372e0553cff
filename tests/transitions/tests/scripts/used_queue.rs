//! A used queue costs as much as a new queue: it needs no more commands for tasks that were never
//! tried.

use optimus_core::{Due, broker::FailureOutcome};

use crate::{
    acts::{Grants, done, failed, ms},
    bench::Bench,
    jobs::{job, jobs},
};

/// Returns how many commands the server has executed, including those of scripts.
async fn commands(bench: &Bench) -> u64 {
    let stats: String = bench.raw(redis::cmd("INFO").arg("commandstats")).await;
    let calls = stats.lines().filter_map(|line| line.split_once("calls=")?.1.split(',').next());
    calls.map(|calls| calls.parse::<u64>().expect("a number of calls")).sum()
}

/// Returns how many commands it takes to claim and complete eight plain tasks.
async fn commands_of_eight(bench: &Bench, at: u64) -> u64 {
    let tasks = jobs(8);
    bench.submit(at, &tasks).await;
    let worker = bench.worker(at, "plain").await;
    let before = commands(bench).await;
    let claimed = bench.claim(at, &worker, at + 1, 8).await;
    assert_eq!(claimed.grants.len(), 8);
    let mut reports: Vec<_> = claimed.leases(&worker).iter().map(done).collect();
    for report in &mut reports {
        report.has_sides = false;
    }
    assert!(bench.complete(at, &reports).await.is_empty());
    commands(bench).await - before
}

#[tokio::test]
async fn a_dead_a_delayed_and_a_retried_task_add_no_commands_for_others() {
    let bench = Bench::own_redis().await;
    // The first call of a script is sent twice, because Redis does not know its text yet.
    commands_of_eight(&bench, 0).await;
    let pristine = commands_of_eight(&bench, 1).await;

    bench.submit(2, &jobs(2)).await;
    let worker = bench.worker(2, "w").await;
    let leases = bench.claim(2, &worker, 1, 2).await.leases(&worker);
    let outcomes = [FailureOutcome::Dead, FailureOutcome::Retry(ms(600_000))];
    let reports: Vec<_> = leases.iter().zip(outcomes).map(|(l, v)| failed(l, v)).collect();
    assert!(bench.fail(2, &reports).await.is_empty());
    bench.add(2, job().due(Due::In(ms(600_000)))).await;

    // The worker's first claim makes it wait for the next due time.
    commands_of_eight(&bench, 3).await;
    assert_eq!(commands_of_eight(&bench, 4).await, pristine);
}
