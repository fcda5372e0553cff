//! `interrupt`: interrupts a worker's own wait for work.

use optimus_core::{WorkerId, broker::Woken};
use redis::cmd;

use crate::{acts::ms, bench::Bench};

async fn the_next_wait_of_that_worker_returns_once(bench: Bench) {
    let (worker, other) = (WorkerId::from_stored("w"), WorkerId::from_stored("other"));
    let queues = [bench.queue.clone()];
    for _ in 0..2 {
        bench.now().interrupt(&bench.queue, &worker).await.unwrap();
    }
    let blocking = bench.now().blocking("wakeups");
    let wait = async |worker, within| {
        blocking.wait_for_work(&queues, (&bench.queue, worker), ms(within)).await.unwrap()
    };
    assert_eq!(wait(&other, 10).await, None);
    assert_eq!(wait(&worker, 5_000).await, Some(Woken::Interrupted));
    assert_eq!(wait(&worker, 10).await, None, "the second interrupt has no effect");
}

async fn an_interrupt_that_is_not_read_expires(bench: Bench) {
    bench.now().interrupt(&bench.queue, &WorkerId::from_stored("w")).await.unwrap();
    let left: i64 = bench.raw(cmd("PTTL").arg(bench.key("interrupt:w"))).await;
    assert!(left > 0, "{left} ms");
}

on_both![the_next_wait_of_that_worker_returns_once, an_interrupt_that_is_not_read_expires];
