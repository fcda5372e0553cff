//! Futures that are dropped before Redis has answered leave nothing behind.

use std::{
    future::{Future, pending},
    pin::pin,
    time::Duration,
};

use crate::common::{
    Bench,
    sums::{LoggedWorker, SOON, number, plus},
};
use futures_util::poll;
use optimus_core::{BoxError, Layer, Limit, Submission};
use optimus_testkit::eventually;
use tokio::task::yield_now;

/// Shorter than the lease of a permit.
const BEFORE_THE_LEASE: Duration = Duration::from_secs(20);

/// Keeps the submit of the first step for good.
struct KeepsTheFirst;

impl Layer for KeepsTheFirst {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        if call.task() == "number" { pending().await } else { Ok(()) }
    }
}

/// Polls a future so many times, and drops it.
async fn drop_after<F: Future>(polls: usize, work: F) {
    let mut work = pin!(work);
    for _ in 0..polls {
        if poll!(&mut work).is_ready() {
            return;
        }
        yield_now().await;
    }
}

on_both! {
    async fn the_steps_of_a_flow_are_removed_if_its_first_one_was_not_sent(bench: Bench) {
        let flow = || number(1).then(plus(10).biz_id("one")).then(plus(100));
        let kept = bench.client_builder().layer(KeepsTheFirst).connect().await.unwrap();
        let count = async || bench.client.inspector().counts("default").await.unwrap().blocked;
        {
            let mut submits = pin!(kept.submit_flow(flow()));
            eventually("the later steps wait", SOON, async || {
                assert!(poll!(&mut submits).is_pending());
                count().await == 2
            })
            .await;
        }
        eventually("they are removed", SOON, async || count().await == 0).await;
        let logged = LoggedWorker::of(&bench);
        let again = bench.client.submit_flow(flow()).await.unwrap();
        assert_eq!(again.result_within(SOON).await.unwrap(), 111, "the biz id is free");
        logged.worker.stop().await;
    }

    async fn a_permit_that_nobody_waits_for_any_more_is_given_back(bench: Bench) {
        let door = bench.client.limit("door");
        door.set(Limit::new().max_working(3)).await.unwrap();
        // The server has the script from now on, so one request is enough.
        door.acquire().await.unwrap().give_back().await;
        for polls in 0..60 {
            drop_after(polls % 20, door.acquire()).await;
            drop_after(polls % 20, door.try_acquire()).await;
        }
        let is_free = async || door.get().await.unwrap().unwrap().working == 0;
        eventually("no permit is in use", BEFORE_THE_LEASE, is_free).await;
    }
}
