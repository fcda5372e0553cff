//! A task that would wait for itself is not stored.

use optimus_core::{
    After, Submission, Submit as _, TaskId, TaskState,
    broker::{BrokerError, Receipt, Refusal},
};

use crate::{
    acts::ids_of,
    after::{after, keyed, waiting},
    bench::Bench,
    jobs::{job, ready},
};

/// A task with a biz id that waits for the holders of others.
fn link(bench: &Bench, biz_id: &str, others: &[&str]) -> Submission {
    let others: Vec<_> = others.iter().map(|other| keyed(bench, other)).collect();
    waiting(job().biz_id(biz_id), After::new(others))
}

async fn add(bench: &Bench, tasks: Vec<Submission>) -> (Vec<TaskId>, Vec<Receipt>) {
    let ids = ids_of(&tasks);
    let receipts = bench.submit(0, &tasks).await;
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    (ids, receipts)
}

async fn the_later_of_two_tasks_that_wait_for_each_other_is_refused(bench: Bench) {
    let (first, receipts) = add(&bench, vec![link(&bench, "a", &["b"])]).await;
    assert_eq!(receipts, [Receipt::Created]);
    let (later, receipts) = add(&bench, vec![link(&bench, "b", &["x", "a"])]).await;
    assert_eq!(receipts, [Receipt::WaitsForItself(first.clone())]);
    assert_eq!(bench.state(&later[0]).await, TaskState::Forgotten);
    // Its biz id is free, and it was not counted.
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 1);
    let (holder, receipts) = add(&bench, vec![ready(job().biz_id("b"))]).await;
    assert_eq!(receipts, [Receipt::Created]);
    assert_eq!(bench.state(&holder[0]).await, TaskState::Ready);
}

async fn a_longer_cycle_is_named_in_its_order(bench: Bench) {
    let tasks = vec![
        link(&bench, "a", &["b", "other"]),
        link(&bench, "b", &["side", "c"]),
        link(&bench, "side", &["end"]),
    ];
    let (ids, _) = add(&bench, tasks).await;
    let (_, receipts) = add(&bench, vec![link(&bench, "c", &["a"])]).await;
    assert_eq!(receipts, [Receipt::WaitsForItself(ids[..2].to_vec())]);
}

async fn tasks_of_one_call_are_decided_in_their_order(bench: Bench) {
    let tasks = || {
        vec![
            link(&bench, "a", &["b"]),
            link(&bench, "b", &["c"]),
            link(&bench, "c", &["a"]),
            link(&bench, "d", &["a", "c"]),
        ]
    };
    let (ids, receipts) = add(&bench, tasks()).await;
    let created = Receipt::Created;
    let refused = Receipt::WaitsForItself(ids[..2].to_vec());
    assert_eq!(receipts, [created.clone(), created.clone(), refused, created]);
}

async fn a_task_that_only_waits_is_known_to_the_later_ones_of_its_call(bench: Bench) {
    let first = waiting(job(), After::new([keyed(&bench, "b")]));
    let second = waiting(job().biz_id("b"), after(first.id()));
    let (ids, receipts) = add(&bench, vec![first, second]).await;
    assert_eq!(receipts, [Receipt::Created, Receipt::WaitsForItself(ids[..1].to_vec())]);
    assert_eq!(bench.state(&ids[1]).await, TaskState::Forgotten);
}

async fn a_call_that_is_sent_again_has_the_same_answer(bench: Bench) {
    add(&bench, vec![link(&bench, "a", &["b"])]).await;
    let tasks = [link(&bench, "b", &["a"])];
    let first = bench.send(1, 9, &tasks).await.unwrap();
    let before = bench.dump().await;
    assert_eq!(bench.send(2, 9, &tasks).await.unwrap(), first);
    assert!(matches!(&first[..], [Receipt::WaitsForItself(path)] if path.len() == 1));
    bench.assert_unchanged(&before).await;
}

async fn a_task_for_which_others_wait_may_wait_for_a_third(bench: Bench) {
    add(&bench, vec![link(&bench, "a", &["c"]), link(&bench, "b", &["c"])]).await;
    let (third, _) = add(&bench, vec![ready(job().biz_id("d"))]).await;
    let task = waiting(job().biz_id("c"), after(&third[0]));
    let (_, receipts) = add(&bench, vec![task]).await;
    assert_eq!(receipts, [Receipt::Created]);
}

async fn a_task_with_a_given_id_may_not_wait_for_one_that_waits_for_that_id(bench: Bench) {
    let id = TaskId::new(bench.queue.clone());
    let (first, _) = add(&bench, vec![waiting(job().biz_id("a"), after(&id))]).await;
    let given = job().id(id).into_submission().expect("the id is of no other queue");
    let (_, receipts) = add(&bench, vec![given.waiting_for(after(&first[0]))]).await;
    assert_eq!(receipts, [Receipt::WaitsForItself(first)]);
}

async fn a_requeue_that_closes_a_cycle_is_refused(bench: Bench) {
    let (first, _) = add(&bench, vec![link(&bench, "a", &["x", "b"])]).await;
    let (free, _) = add(&bench, vec![link(&bench, "d", &["b"])]).await;
    for id in [&first[0], &free[0]] {
        bench.at(1).cancel(id).await.unwrap();
    }
    let (second, receipts) = add(&bench, vec![waiting(job().biz_id("b"), after(&first[0]))]).await;
    assert_eq!(receipts, [Receipt::Created]);
    let before = bench.dump().await;
    match bench.at(2).requeue(&first[0]).await {
        Err(BrokerError::Refused(Refusal::Cycle, path)) => assert_eq!(path, second[0].stored()),
        other => panic!("{other:?}"),
    }
    bench.assert_unchanged(&before).await;
    // One that does not wait for itself waits again.
    bench.at(3).requeue(&free[0]).await.unwrap();
    assert_eq!(bench.state(&free[0]).await, TaskState::Blocked);
    bench.at(4).cancel(&second[0]).await.unwrap();
    bench.at(5).requeue(&first[0]).await.unwrap();
    assert_eq!(bench.state(&first[0]).await, TaskState::Blocked);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_very_long_cycle_is_not_searched(bench: Bench) {
    let name = |at: usize| format!("b{at}");
    let chain = |count: usize| {
        let link = |at| link(&bench, &name(at), &[&name(at + 1)]);
        (0..count).map(link).collect::<Vec<_>>()
    };
    let (ids, _) = add(&bench, chain(64)).await;
    let (_, receipts) = add(&bench, vec![link(&bench, "b64", &["b1"])]).await;
    assert_eq!(receipts, [Receipt::WaitsForItself(ids[1..].to_vec())], "63 tasks");
    let (_, receipts) = add(&bench, vec![link(&bench, "b64", &["x"])]).await;
    assert_eq!(receipts, [Receipt::Created]);
    let (_, receipts) = add(&bench, vec![link(&bench, "x", &["b0"])]).await;
    assert_eq!(receipts, [Receipt::Created], "65 tasks are more than a call walks");
}

/// Otherwise a call of 1,000 tasks with 31 prerequisites each would hold Redis up for a second.
async fn a_call_searches_for_cycles_only_so_long(bench: Bench) {
    let name = |at: usize| format!("d{at}");
    let dense = |at: usize| {
        let former: Vec<String> = (at.saturating_sub(31)..at).map(name).collect();
        link(&bench, &name(at), &former.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let pair = || [link(&bench, "x", &["y"]), link(&bench, "y", &["x"])];
    let (ids, receipts) = add(&bench, (1..31).map(dense).chain(pair()).collect()).await;
    let cycle = Receipt::WaitsForItself(vec![ids[30].clone()]);
    assert_eq!(receipts.last(), Some(&cycle), "the search goes so far");
    bench.at(1).delete_all(&bench.queue, &[&ids[30]]).await.unwrap();
    let (_, receipts) = add(&bench, (100..500).map(dense).chain(pair()).collect()).await;
    assert_eq!(receipts.last(), Some(&Receipt::Created), "and no farther");
}

on_both![
    the_later_of_two_tasks_that_wait_for_each_other_is_refused,
    a_longer_cycle_is_named_in_its_order,
    tasks_of_one_call_are_decided_in_their_order,
    a_task_that_only_waits_is_known_to_the_later_ones_of_its_call,
    a_call_that_is_sent_again_has_the_same_answer,
    a_task_for_which_others_wait_may_wait_for_a_third,
    a_task_with_a_given_id_may_not_wait_for_one_that_waits_for_that_id,
    a_requeue_that_closes_a_cycle_is_refused,
    a_very_long_cycle_is_not_searched,
    a_call_searches_for_cycles_only_so_long,
];
