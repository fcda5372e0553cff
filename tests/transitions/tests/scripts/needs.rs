//! `needs` of `meta`: newer programs have written data that these scripts would damage.

use std::time::Duration;

use optimus_core::{
    Due, Lane, Limit, TaskState,
    broker::{BrokerError, FailureOutcome, Refusal},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, failed, keep},
    after::after,
    bench::Bench,
    jobs::{job, ready},
    limits::{at_most, named},
};

const LEASE: Duration = Duration::from_secs(15);

fn is_newer<T>(answer: &Result<T, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::Refused(Refusal::Newer, needs)) if needs == "8")
}

async fn set_needs(bench: &Bench, needs: u32) {
    let () = bench.raw(cmd("HSET").arg(bench.key("meta")).arg("needs").arg(needs)).await;
}

async fn older_scripts_do_not_change_a_queue_of_newer_ones(bench: Bench) {
    let (dead, held, waits) =
        (bench.add(0, job()).await, bench.add(0, job()).await, bench.add(0, job()).await);
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await;
    let lease = bench.take(0, &worker, 2).await;
    set_needs(&bench, 8).await;
    let before = bench.dump().await;

    let late = bench.at(20_000);
    assert!(is_newer(&bench.at(0).claim(&bench.queue, &worker, 3, 1).await));
    assert!(is_newer(&late.reap(&bench.queue, &worker, LEASE, 9).await));
    assert!(is_newer(&late.cancel(&waits).await));
    assert!(is_newer(&late.requeue(&dead).await));
    assert!(is_newer(&late.delete_all(&bench.queue, &[&dead]).await));
    assert!(is_newer(&late.purge(&bench.queue, keep(0, Duration::ZERO), LEASE).await));
    assert!(is_newer(&late.retire(&bench.queue, Duration::ZERO).await));
    bench.assert_unchanged(&before).await;

    // Tasks that were claimed before can still end, and reads and submits work.
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    assert_eq!(bench.state(&held).await, TaskState::Success);
    let new = bench.add(0, job()).await;
    assert_eq!(bench.state(&new).await, TaskState::Ready);
}

async fn a_known_version_is_accepted(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    set_needs(&bench, 1).await;
    assert_eq!(bench.take(0, &worker, 1).await.id, id);
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(0).purge(&bench.queue, keep(0, Duration::ZERO), LEASE).await.unwrap();
}

async fn the_first_task_of_a_lane_raises_what_the_queue_needs(bench: Bench) {
    let lane = Lane::new("a");
    let biz = || job().biz_id("b");
    bench.add(0, biz()).await;
    let refused = ready(biz()).in_lane(lane.clone());
    bench.submit(0, &[refused]).await;
    assert_eq!(bench.field("meta", "needs").await, None, "nothing was stored");
    bench.add_call_in(0, &lane, job().due(Due::In(LEASE))).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("2"));
    set_needs(&bench, 3).await;
    bench.add_in(0, &lane).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("3"), "it is never lowered");
}

async fn the_first_limit_raises_what_the_queue_needs(bench: Bench) {
    let refused = ready(job().biz_id("b"));
    bench.submit(0, &[refused]).await;
    let limited = || ready(job().biz_id("b")).limited_by(vec![at_most("m", 1)]);
    bench.submit(0, &[limited()]).await;
    assert_eq!(bench.field("meta", "needs").await, None, "nothing was stored");
    bench.submit(0, &[ready(job().due(Due::In(LEASE))).limited_by(vec![at_most("m", 1)])]).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("3"));
    for needs in [1, 2] {
        set_needs(&bench, needs).await;
        bench.now().pause_gate(&bench.queue, &named("m"), "", "").await.unwrap();
        assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("3"));
    }
    set_needs(&bench, 1).await;
    bench.now().set_limit(&bench.queue, &named("m"), Some(&Limit::new())).await.unwrap();
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("3"));
}

async fn a_queue_with_prerequisites_and_no_limit_has_no_gates_to_look_at(bench: Bench) {
    let first = bench.add(0, job()).await;
    let second = bench.add_after(0, job(), after(&first)).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("4"));
    let () = bench.raw(cmd("SET").arg(bench.key("limits")).arg("a claim may not read this")).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.complete(0, &[done(&lease)]).await;
    assert_eq!(bench.take(0, &worker, 2).await.id, second);
    let () = bench.raw(cmd("DEL").arg(bench.key("limits"))).await;
    let limited = bench.add_limited(0, 2, &[at_most("m", 1)]).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("4"));
    assert_eq!(bench.claim(0, &worker, 3, 2).await.ids(), [limited[0].id().clone()]);
    bench.assert_sound().await;
}

on_both![
    a_queue_with_prerequisites_and_no_limit_has_no_gates_to_look_at,
    the_first_limit_raises_what_the_queue_needs,
    older_scripts_do_not_change_a_queue_of_newer_ones,
    a_known_version_is_accepted,
    the_first_task_of_a_lane_raises_what_the_queue_needs,
];
