//! Nobody is reaped for an outage: after a time without watch everybody gets a whole lease. And a
//! clock that is set back takes leases back with it.

use optimus_core::WorkerId;

use crate::{
    acts::{Grants, LEASE, LEASE_MS, ms},
    bench::{Bench, START},
    jobs::jobs,
};

/// Longer than any lease here.
const BACK: u64 = 100_000;

/// Two workers with a task each, of whom nobody has heard since the start.
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

async fn a_reap_after_an_outage_takes_nothing_and_gives_everybody_a_lease(bench: Bench) {
    let [one, _] = outage(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
    assert_whole_leases(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
}

async fn a_heartbeat_after_an_outage_gives_everybody_a_lease(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    assert_whole_leases(&bench).await;
    assert_eq!(reap(&bench, BACK, &one).await, 0);
    assert_eq!(bench.claim(BACK, &two, 2, 1).await.ids().len(), 1, "two is alive again");
}

async fn a_newcomer_after_an_outage_gives_everybody_a_lease(bench: Bench) {
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

async fn who_does_not_come_back_is_reaped_one_lease_after_the_outage(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, BACK, &one).await;
    renew(&bench, BACK + LEASE_MS - 1, &one).await;
    assert_eq!(reap(&bench, BACK + LEASE_MS - 1, &one).await, 0, "that was a second outage");
    for at in [5_000, 10_000, 15_000, 20_000, 25_000] {
        renew(&bench, BACK + LEASE_MS + at, &one).await;
    }
    let end = BACK + 2 * LEASE_MS - 1;
    assert_eq!(reap(&bench, end - 1, &one).await, 0);
    assert_eq!(reap(&bench, end, &one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn half_a_lease_without_watch_is_no_outage(bench: Bench) {
    let [one, two] = outage(&bench).await;
    renew(&bench, LEASE_MS / 2, &one).await;
    assert_eq!(bench.score("workers", "two").await, Some(START + LEASE_MS));
    assert_eq!(reap(&bench, LEASE_MS, &one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn a_little_more_than_half_a_lease_is_one(bench: Bench) {
    let [one, _] = outage(&bench).await;
    renew(&bench, LEASE_MS / 2 + 1, &one).await;
    let raised = START + LEASE_MS + LEASE_MS / 2 + 1;
    assert_eq!(bench.score("workers", "two").await, Some(raised));
}

/// Two workers with a task each, under a clock that is set back by `BACK` right after.
async fn clock_set_back(bench: &Bench) -> [WorkerId; 2] {
    bench.submit(BACK, &jobs(3)).await;
    let workers = [bench.worker(BACK, "one").await, bench.worker(BACK, "two").await];
    for worker in &workers {
        bench.take(BACK, worker, 1).await;
    }
    workers
}

/// The other is found dead when its lease is over by the clock as it is now.
async fn assert_two_is_reaped_in_time(bench: &Bench, one: &WorkerId, two: &WorkerId) {
    assert_eq!(bench.score("workers", two.as_str()).await, Some(START + LEASE_MS));
    for at in [5_000, 10_000] {
        renew(bench, at, one).await;
    }
    assert_eq!(reap(bench, LEASE_MS - 1, one).await, 0);
    assert_eq!(reap(bench, LEASE_MS, one).await, 1);
    assert_eq!(bench.score("workers", two.as_str()).await, None);
}

async fn a_heartbeat_takes_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    renew(&bench, 0, &one).await;
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

async fn a_reap_takes_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    assert_eq!(reap(&bench, 0, &one).await, 0);
    assert_eq!(reap(&bench, 0, &one).await, 0, "and only once");
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

async fn a_newcomer_takes_leases_back_with_the_clock(bench: Bench) {
    let [one, two] = clock_set_back(&bench).await;
    bench.worker(0, "new").await;
    assert_two_is_reaped_in_time(&bench, &one, &two).await;
}

on_both![
    a_reap_after_an_outage_takes_nothing_and_gives_everybody_a_lease,
    a_heartbeat_after_an_outage_gives_everybody_a_lease,
    a_newcomer_after_an_outage_gives_everybody_a_lease,
    a_longer_lease_is_not_shortened,
    who_does_not_come_back_is_reaped_one_lease_after_the_outage,
    half_a_lease_without_watch_is_no_outage,
    a_little_more_than_half_a_lease_is_one,
    a_heartbeat_takes_leases_back_with_the_clock,
    a_reap_takes_leases_back_with_the_clock,
    a_newcomer_takes_leases_back_with_the_clock,
];
