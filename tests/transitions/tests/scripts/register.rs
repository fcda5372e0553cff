//! `register`: ∅ → a worker of the queue, with a lease.

use optimus_core::WorkerId;

use crate::{
    acts::{LEASE, LEASE_MS, ms},
    bench::{Bench, START},
    jobs::jobs,
};

async fn a_worker_is_registered_with_its_lease_and_description(bench: Bench) {
    let worker = WorkerId::from_stored("w");
    let description = r#"{"host":"here"}"#;
    let registered = bench.at(5).register(&bench.queue, &worker, LEASE, description).await.unwrap();
    assert_eq!((registered.now_ms, registered.next_expiry), (START + 5, None));

    let seen = bench.now().workers(&bench.queue).await.unwrap().remove(0);
    assert_eq!((&seen.id, seen.lease_until_ms), (&worker, START + 5 + LEASE_MS));
    assert_eq!((seen.description.as_str(), seen.running.len()), (description, 0));
    assert_eq!(bench.names().await, ["meta", "worker:w", "workers"]);
}

async fn registering_again_renews_the_lease_and_keeps_what_is_held(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.worker(9, "w").await;
    assert_eq!(bench.score("workers", "w").await, Some(START + 9 + LEASE_MS));
    let held = bench.field("working:w", &lease.id.stored()).await;
    assert_eq!(held, Some(lease.token.to_string()));
    assert_eq!(bench.take_again(9, &worker, 1).await, [lease.id], "the last claim is remembered");
}

async fn it_returns_when_the_earliest_other_lease_is_over(bench: Bench) {
    bench.worker_for(0, "late", ms(90)).await;
    bench.worker_for(0, "early", ms(50)).await;
    let (queue, worker) = (&bench.queue, WorkerId::from_stored("w"));
    for (at, expected) in [(10, 40), (30, 20), (50, 0), (60, 0)] {
        let registered = bench.at(at).register(queue, &worker, LEASE, "{}").await.unwrap();
        assert_eq!(registered.next_expiry, Some(ms(expected)), "at {at}");
    }
}

async fn without_an_override_the_time_is_that_of_the_store(bench: Bench) {
    let worker = WorkerId::from_stored("w");
    let registered = bench.now().register(&bench.queue, &worker, LEASE, "{}").await.unwrap();
    let here = chrono::Utc::now().timestamp_millis().unsigned_abs();
    assert!(registered.now_ms.abs_diff(here) < 60_000);
}

on_both![
    a_worker_is_registered_with_its_lease_and_description,
    registering_again_renews_the_lease_and_keeps_what_is_held,
    it_returns_when_the_earliest_other_lease_is_over,
    without_an_override_the_time_is_that_of_the_store,
];
