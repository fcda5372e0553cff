//! `operation_carry` of an operation that is over: its carrier lets tasks ask before it ends it.

use optimus_core::broker::Held;

use crate::{
    acts::ms,
    bench::Bench,
    operation_carry::{add, counted, held},
};

async fn a_cancelled_operation_is_carried_on_until_its_carrier_ends_it(bench: Bench) {
    let queue = &bench.queue;
    add(&bench, 0, "a", 9).await.unwrap();
    counted(&bench, 1, "a").await;
    bench.at(2).operation_confirm(queue, "a", 5, "").await.unwrap();
    let (fence, _) = bench.at(3).operation_take(queue, "a", ms(9)).await.unwrap();
    bench.at(4).operation_cancel(queue, "a").await.unwrap();
    let is_left = async |at| {
        assert_eq!(bench.at(at).operation_carried(queue).await.unwrap().as_deref(), Some("a"));
        let tasks = bench.at(at).operation_counted(queue, "a", 2).await.unwrap();
        assert_eq!(tasks.as_deref(), Some(&b"more"[..]));
    };
    // Its carrier leaves, and does not know that it is cancelled.
    let left = held(fence, 0, "running", "running");
    let saved = bench.at(5).operation_carry(queue, "a", left).await.unwrap();
    assert_eq!(saved.state, "cancelled");
    is_left(5).await;
    let (fence, _) = bench.at(6).operation_take(queue, "a", ms(9)).await.unwrap();
    let reached = Held { reached: Some(1), ..held(fence, 9, "cancelled", "cancelled") };
    for _ in 0..2 {
        bench.at(7).operation_carry(queue, "a", reached).await.unwrap();
    }
    is_left(7).await;
    assert_eq!(bench.at(7).operation_counted(queue, "a", 1).await.unwrap(), None);
    let last = held(fence, 0, "cancelled", "cancelled");
    bench.at(8).operation_carry(queue, "a", last).await.unwrap();
    assert_eq!(bench.at(8).operation_carried(queue).await.unwrap(), None);
    assert_eq!(bench.at(8).operation_counted(queue, "a", 2).await.unwrap(), None);
    assert_eq!(bench.fsck().await, [""; 0]);
}

on_both![a_cancelled_operation_is_carried_on_until_its_carrier_ends_it];
