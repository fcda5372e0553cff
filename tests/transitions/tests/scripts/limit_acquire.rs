//! `acquire` and `repay`: a limit outside tasks.

use optimus_core::{Limit, Rate, broker::Acquired};

use crate::{
    acts::{Grants, done, ids_of, ms},
    bench::Bench,
    limits::{at_most, named},
};

impl Bench {
    async fn set(&self, limit: Limit) {
        self.at(0).set_limit(&self.queue, &named("x"), Some(&limit)).await.unwrap();
    }

    async fn acquire(&self, at: u64, permit: &str) -> Acquired {
        self.at(at).acquire(&self.queue, &named("x"), 1, permit, ms(1_000)).await.unwrap()
    }

    async fn give_back(&self, at: u64, permit: &str) {
        self.at(at).give_back(&self.queue, &named("x"), permit).await.unwrap();
    }
}

async fn a_permit_is_shared_with_tasks(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.set(Limit::new().max_working(1)).await;
    bench.add_limited(0, 2, &[at_most("x", 5)]).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    let claimed = bench.claim(1, &worker, 1, 128).await;
    assert_eq!((claimed.ids().len(), claimed.next_due), (0, Some(ms(999))));
    bench.assert_sound().await;
    bench.answer_wakeup().await;
    bench.give_back(2, "p").await;
    assert!(bench.answer_wakeup().await);
    let lease = bench.take(3, &worker, 2).await;
    assert!(matches!(bench.acquire(4, "p").await, Acquired::Wait(_)));
    bench.complete(5, &[done(&lease)]).await;
    assert_eq!(bench.acquire(6, "q").await, Acquired::Granted);
    bench.assert_sound().await;
}

async fn a_permit_ends_with_its_lease_unless_it_is_renewed(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.set(Limit::new().max_working(1)).await;
    bench.add_limited(0, 1, &[at_most("x", 5)]).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    let renewed = bench.at(900).renew_permit(&bench.queue, &named("x"), "p", ms(1_000)).await;
    assert!(renewed.unwrap());
    assert_eq!(bench.acquire(1_500, "q").await, Acquired::Wait(ms(400)));
    assert_eq!(bench.claim(1_899, &worker, 1, 128).await.ids(), []);
    let claimed = bench.claim(1_900, &worker, 2, 128).await;
    assert_eq!(claimed.ids().len(), 1, "the lease is over");
    bench.assert_sound().await;
    let renewed = bench.at(1_901).renew_permit(&bench.queue, &named("x"), "p", ms(1_000)).await;
    assert!(!renewed.unwrap());
    bench.give_back(1_902, "p").await;
    bench.assert_sound().await;
}

async fn a_repeated_acquire_takes_nothing_more(bench: Bench) {
    bench.set(Limit::new().rate(Rate::per_second(1)).burst(2)).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    let spent = bench.score("spent", "limit:x").await;
    assert_eq!(bench.acquire(1, "p").await, Acquired::Granted);
    assert_eq!(bench.score("spent", "limit:x").await, spent);
    assert_eq!(bench.acquire(2, "q").await, Acquired::Granted);
    assert_eq!(bench.acquire(3, "r").await, Acquired::Wait(ms(997)));
    bench.assert_sound().await;
}

async fn a_permit_that_is_acquired_again_after_its_lease_counts(bench: Bench) {
    bench.set(Limit::new().max_working(1)).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    assert_eq!(bench.acquire(1_001, "p").await, Acquired::Granted);
    assert_eq!(bench.acquire(1_002, "q").await, Acquired::Wait(ms(999)));
    bench.assert_sound().await;
    bench.give_back(1_003, "p").await;
    assert_eq!(bench.acquire(1_004, "q").await, Acquired::Granted);
    bench.assert_sound().await;
}

async fn a_permit_from_before_a_number_of_permits_frees_none_of_them(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.set(Limit::new().rate(Rate::per_second(1_000))).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    bench.set(Limit::new().max_working(1)).await;
    bench.add_limited(0, 2, &[at_most("x", 5)]).await;
    assert_eq!(bench.claim(1, &worker, 1, 128).await.ids().len(), 1);
    assert_eq!(bench.claim(1_001, &worker, 2, 128).await.ids(), [], "the lease of p is over");
    bench.assert_sound().await;
}

async fn a_permit_that_is_given_back_after_its_lease_is_free(bench: Bench) {
    bench.set(Limit::new().max_working(1)).await;
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    bench.give_back(1_001, "p").await;
    assert_eq!(bench.acquire(1_002, "q").await, Acquired::Granted);
    bench.assert_sound().await;
}

/// The gate opens when the permit ends at the latest. It opens earlier, even if that permit is of
/// another limit.
async fn the_end_of_a_task_lets_another_start_while_a_permit_is_held_outside(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.set(Limit::new().max_working(2)).await;
    let ids = ids_of(&bench.add_limited(0, 2, &[at_most("x", 5)]).await);
    assert_eq!(bench.acquire(0, "p").await, Acquired::Granted);
    let first = bench.claim(1, &worker, 1, 128).await;
    assert_eq!(first.ids(), ids[..1]);
    bench.complete(2, &[done(&first.leases(&worker)[0])]).await;
    assert_eq!(bench.claim(3, &worker, 2, 128).await.ids(), ids[1..]);
    bench.assert_sound().await;
}

on_both![
    a_permit_that_is_acquired_again_after_its_lease_counts,
    a_permit_from_before_a_number_of_permits_frees_none_of_them,
    a_permit_that_is_given_back_after_its_lease_is_free,
    the_end_of_a_task_lets_another_start_while_a_permit_is_held_outside,
    a_permit_is_shared_with_tasks,
    a_permit_ends_with_its_lease_unless_it_is_renewed,
    a_repeated_acquire_takes_nothing_more,
];
