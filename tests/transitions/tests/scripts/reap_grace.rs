//! An outage costs no worker its lease: after a time in which no worker watched, every worker gets
//! a whole lease. If the clock is set back, leases are set back with it.

use optimus_core::{TaskState, WorkerId};

use crate::{
    acts::{Grants, LEASE, LEASE_MS, ms},
    bench::{Bench, START},
    jobs::{job, jobs},
};

/// A step that is longer than any lease in this file.
const BACK: u64 = 100_000;

/// Two workers with a task each, which have not renewed since the start.
async fn outage(bench: &Bench) -> [WorkerId; 2] {
    bench.submit(0, &jobs(3)).await;
    let workers = [bench.worker(0, "one").await, bench.worker(0, "two").await];
    for worker in &workers {
        bench.take(0, worker, 1).await;
    }
    workers
}

async fn reap(bench: &Bench, at: u64, worker: &WorkerId) -> usize {
    bench.at(at).reap(&bench.queue, worker, LEASE, 128).await.expect("not refused").tasks
}

async fn renew(bench: &Bench, at: u64, worker: &WorkerId) {
    bench.at(at).renew(&bench.queue, worker, LEASE).await.expect("not refused");
}

async fn assert_whole_leases(bench: &Bench) {
    for name in ["one", "two"] {
        assert_eq!(bench.score("workers", name).await, Some(START + BACK + LEASE_MS), "{name}");
    }
    let watched = bench.field("meta", "watched_at").await;
    assert_eq!(watched, Some((START + BACK).to_string()));
}

async fn a_reap_after_an_outage_takes_nothing_and_gives_every_worker_a_lease(bench: Bench) {
    let [one, _] = outage(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
    assert_whole_leases(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
}

async fn a_heartbeat_after_an_outage_gives_every_worker_a_lease(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    assert_whole_leases(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
    assert_eq!(bench.claim(BACK, &two, 2, 1).await.ids().len(), 1, "two is alive again");
}

async fn a_new_worker_after_an_outage_gives_every_worker_a_lease(bench: Bench) {
    outage(&bench).await;
    let new = bench.worker(BACK, "new").await;
    assert_whole_leases(&bench).await;
    assert_eq!(reap(&bench, BACK, &new).await, 0);
}

async fn a_longer_lease_is_not_shortened(bench: Bench) {
    let [one, _] = outage(&bench).await;
    bench.worker_for(0, "long", ms(900_000)).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
    assert_eq!(bench.score("workers", "long").await, Some(START + 900_000));
}

async fn a_worker_that_does_not_return_is_reaped_one_lease_after_the_outage(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    for at in [5_000, 10_000] {
        renew(&bench, BACK + at, &one).await;
    }
    assert_eq!(reap(&bench, BACK + LEASE_MS - 1, &one).await, 0);
    assert_eq!(reap(&bench, BACK + LEASE_MS, &one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn a_second_outage_gives_no_second_lease_to_a_worker_that_did_not_renew(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    renew(&bench, BACK + LEASE_MS - 1, &one).await;
    assert_eq!(bench.score("workers", two.as_str()).await, Some(START + BACK + LEASE_MS));
    assert_eq!(reap(&bench, BACK + LEASE_MS, &one).await, 1);
}

async fn a_second_outage_gives_another_lease_to_a_worker_that_renewed(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    renew(&bench, BACK + 1, &two).await;
    renew(&bench, 2 * BACK, &one).await;
    assert_eq!(bench.score("workers", two.as_str()).await, Some(START + 2 * BACK + LEASE_MS));
    assert_eq!(reap(&bench, 2 * BACK, &one).await, 0);
}

/// A supervisor restarts a single worker, each time later than half a lease after its death and
/// each time for less than a lease. Each start reaps first.
async fn a_single_worker_that_dies_repeatedly_reaps_its_predecessors(bench: Bench) {
    let id = bench.add(0, job()).await;
    let (gap, mut reaped) = (LEASE_MS / 2 + 3_000, 0);
    for start in 0..10 {
        let (at, name) = (start * gap, format!("start {start}"));
        let worker = bench.worker(at, &name).await;
        reaped += reap(&bench, at, &worker).await;
        bench.at(at).claim_alone(&bench.queue, &worker, 1).await.expect("the worker is registered");
    }
    assert_eq!((reaped, bench.state(&id).await), (3, TaskState::Dead));
    assert!(bench.names().await.iter().filter(|name| name.starts_with("worker:")).count() <= 3);
}

async fn a_worker_with_a_short_lease_gives_others_their_own_lease_after_an_outage(bench: Bench) {
    let long = bench.worker_for(0, "long", ms(6_000)).await;
    let short = bench.worker_for(0, "short", ms(1_000)).await;
    bench.add(0, job()).await;
    bench.take(0, &long, 1).await;
    // This time is late enough that both leases are over.
    bench.at(10_000).renew(&bench.queue, &short, ms(1_000)).await.unwrap();
    assert_eq!(bench.score("workers", "long").await, Some(START + 16_000));
    let reaped = bench.at(11_500).reap(&bench.queue, &short, ms(1_000), 128).await.unwrap();
    assert_eq!(reaped.tasks, 0, "the other has a longer lease");
}

async fn an_outage_is_measured_by_each_workers_own_lease(bench: Bench) {
    let long = bench.worker_for(0, "long", ms(6_000)).await;
    let short = bench.worker_for(0, "short", ms(1_000)).await;
    bench.add(0, job()).await;
    bench.take(0, &short, 1).await;
    // This is not an outage for the worker that returns first. It is one for the other worker,
    // whose lease is over.
    bench.at(2_000).renew(&bench.queue, &long, ms(6_000)).await.unwrap();
    assert_eq!(bench.score("workers", "short").await, Some(START + 3_000));
    let reaped = bench.at(2_000).reap(&bench.queue, &long, ms(6_000), 128).await.unwrap();
    assert_eq!((reaped.tasks, reaped.next_expiry), (0, Some(ms(1_000))));
}

/// If no worker serves a queue, no worker watches between two reaps.
async fn the_second_of_two_rare_reaps_takes_tasks_back(bench: Bench) {
    outage(&bench).await;
    let stranger = WorkerId::from_stored("stranger");
    assert_eq!(reap(&bench, BACK, &stranger).await, 0);
    assert_eq!(reap(&bench, 2 * BACK, &stranger).await, 2);
}

async fn half_a_lease_without_watch_is_not_an_outage(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, LEASE_MS / 2, &one).await;
    assert_eq!(bench.score("workers", "two").await, Some(START + LEASE_MS));
    assert_eq!(reap(&bench, LEASE_MS, &one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn a_little_more_than_half_a_lease_without_watch_is_an_outage(bench: Bench) {
    let [one, _] = outage(&bench).await;
    renew(&bench, LEASE_MS / 2 + 1, &one).await;
    let raised = START + LEASE_MS + LEASE_MS / 2 + 1;
    assert_eq!(bench.score("workers", "two").await, Some(raised));
}

/// Two workers with a task each, and a clock that is set back by `BACK` directly afterwards.
async fn clock_set_back(bench: &Bench) -> [WorkerId; 2] {
    bench.submit(BACK, &jobs(3)).await;
    let workers = [bench.worker(BACK, "one").await, bench.worker(BACK, "two").await];
    for worker in &workers {
        bench.take(BACK, worker, 1).await;
    }
    workers
}

/// Checks that the other worker is reaped when its lease is over by the new time.
async fn assert_two_is_reaped_in_time(bench: &Bench, one: &WorkerId, two: &WorkerId) {
    assert_eq!(bench.score("workers", two.as_str()).await, Some(START + LEASE_MS));
    for at in [5_000, 10_000] {
        renew(bench, at, one).await;
    }
    assert_eq!(reap(bench, LEASE_MS - 1, one).await, 0);
    assert_eq!(reap(bench, LEASE_MS, one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn a_heartbeat_sets_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    renew(&bench, 0, &one).await;
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

async fn a_reap_sets_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    assert_eq!(reap(&bench, 0, &one).await, 0);
    assert_eq!(reap(&bench, 0, &one).await, 0, "leases are set back only once");
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

async fn a_new_worker_sets_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    bench.worker(0, "new").await;
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

async fn a_long_lease_is_long_after_an_outage_until_a_grant(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    for number in 1..16 {
        bench.worker(0, &format!("other {number}")).await;
    }
    renew(&bench, 0, &worker).await;
    assert_eq!(reap(&bench, BACK, &WorkerId::from_stored("other 1")).await, 0);
    let expiry = bench.exact_score("workers", "w").await;
    assert_eq!(expiry, Some(format!("{}.5", START + BACK + 10 * LEASE_MS)));
    // The worker relies on a long lease until it gets the answer with its first task.
    bench.take(BACK + 9 * LEASE_MS, &worker, 1).await;
    let expiry = bench.score("workers", "w").await;
    assert_eq!(expiry, Some(START + BACK + 10 * LEASE_MS));
}

async fn a_long_lease_is_set_back_with_the_clock_and_stays_long(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(BACK, "w").await;
    for number in 1..16 {
        bench.worker(BACK, &format!("other {number}")).await;
    }
    renew(&bench, BACK, &worker).await;
    renew(&bench, 0, &WorkerId::from_stored("other 1")).await;
    let expiry = bench.exact_score("workers", "w").await;
    assert_eq!(expiry, Some(format!("{}.5", START + 2 * LEASE_MS)));
    bench.take(1, &worker, 1).await;
    assert_eq!(bench.score("workers", "w").await, Some(START + 1 + LEASE_MS));
}

/// An idle worker of a large fleet has a long lease, for which a claim gives a usual one.
async fn a_worker_that_claims_after_the_clock_was_set_back_is_not_reaped(bench: Bench) {
    let mut workers = Vec::new();
    for number in 0..20 {
        workers.push(bench.worker(BACK, &format!("worker {number}")).await);
    }
    for worker in &workers {
        renew(&bench, BACK, worker).await;
    }
    bench.submit(0, &jobs(1)).await;
    bench.take(0, &workers[0], 1).await;
    renew(&bench, 1, &workers[1]).await;
    assert_eq!(bench.score("workers", "worker 0").await, Some(START + LEASE_MS));
    assert_eq!(reap(&bench, 1, &workers[1]).await, 0);
}

on_both![
    a_worker_that_claims_after_the_clock_was_set_back_is_not_reaped,
    a_long_lease_is_long_after_an_outage_until_a_grant,
    a_long_lease_is_set_back_with_the_clock_and_stays_long,
    a_reap_after_an_outage_takes_nothing_and_gives_every_worker_a_lease,
    a_heartbeat_after_an_outage_gives_every_worker_a_lease,
    a_new_worker_after_an_outage_gives_every_worker_a_lease,
    a_longer_lease_is_not_shortened,
    a_worker_that_does_not_return_is_reaped_one_lease_after_the_outage,
    a_second_outage_gives_no_second_lease_to_a_worker_that_did_not_renew,
    a_second_outage_gives_another_lease_to_a_worker_that_renewed,
    a_single_worker_that_dies_repeatedly_reaps_its_predecessors,
    a_worker_with_a_short_lease_gives_others_their_own_lease_after_an_outage,
    an_outage_is_measured_by_each_workers_own_lease,
    the_second_of_two_rare_reaps_takes_tasks_back,
    half_a_lease_without_watch_is_not_an_outage,
    a_little_more_than_half_a_lease_without_watch_is_an_outage,
    a_heartbeat_sets_leases_back_with_the_clock,
    a_reap_sets_leases_back_with_the_clock,
    a_new_worker_sets_leases_back_with_the_clock,
];
