//! Futures that are dropped before Redis has answered leave nothing behind.

use std::{
    future::{Future, pending},
    pin::pin,
    time::Duration,
};

use crate::common::{
    Bench,
    sums::{LoggedWorker, SOON, note, number, plus, sum},
};
use futures_util::poll;
use optimus_core::{BoxError, Flow, IntoFlow as _, Layer, Limit, Submission, group};
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

async fn blocked(bench: &Bench) -> u64 {
    bench.client.inspector().counts("default").await.unwrap().blocked
}

// On one thread, nothing is sent before the flow is dropped.
#[tokio::test]
async fn the_steps_of_a_dropped_flow_are_removed_although_they_are_stored_later() {
    let bench = Bench::on_redis().await;
    // The calls of a queue do not overtake each other, so the steps come after all of these.
    let others = (0..40_000).map(number);
    let mut others = pin!(bench.client.submit_all(others));
    assert!(poll!(&mut others).is_pending());
    let flow = number(1).queue("other").then(plus(10)).then(plus(100));
    drop_after(1, bench.client.submit_flow(flow)).await;
    others.await.unwrap();
    bench.client.submit(note("after the steps")).await.unwrap();
    eventually("the steps are removed", SOON, async || blocked(&bench).await == 0).await;
}

on_both! {
    async fn the_parts_of_a_flow_are_removed_if_its_first_step_was_not_sent(bench: Bench) {
        let chain = || number(1).then(plus(10).biz_id("one")).then(plus(100)).into_flow();
        let grouped = || number(1).then(group((1..=3).map(plus))).then(sum).into_flow();
        let flows: [(&dyn Fn() -> Flow<'static, u64>, _, _); 2] =
            [(&chain, 2, 111), (&grouped, 4, 9)];
        let kept = bench.client_builder().layer(KeepsTheFirst).connect().await.unwrap();
        for (flow, later, result) in flows {
            {
                let mut submits = pin!(kept.submit_flow(flow()));
                eventually("the later parts wait", SOON, async || {
                    assert!(poll!(&mut submits).is_pending());
                    blocked(&bench).await == later
                })
                .await;
            }
            eventually("they are removed", SOON, async || {
                let groups = bench.client.inspector().groups("default", None, 1).await.unwrap();
                groups.rows.is_empty() && blocked(&bench).await == 0
            })
            .await;
            let logged = LoggedWorker::of(&bench);
            let again = bench.client.submit_flow(flow()).await.unwrap();
            assert_eq!(again.result_within(SOON).await.unwrap(), result, "a biz id is free");
            logged.worker.stop().await;
        }
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
