//! `requeue`: Dead | Cancelled → Ready, by an operator. For the task's biz id see `biz`; for its
//! position in the ready list see `claim_order`.

use optimus_core::{
    Due, TaskId, TaskState,
    broker::{BrokerError, FailureOutcome, Give, Refusal, StartBy},
};

use crate::{
    acts::{Grants, done, failed, given, ms},
    bench::{Bench, START},
    jobs::job,
};

async fn assert_wrong_state(bench: &Bench, id: &TaskId, state: &str) {
    let before = bench.dump().await;
    match bench.at(9).requeue(id).await {
        Err(BrokerError::Refused(Refusal::WrongState, named)) => assert_eq!(named, state),
        other => panic!("{state}: {other:?}"),
    }
    bench.assert_unchanged(&before).await;
}

async fn a_dead_task_starts_again_and_keeps_its_history(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    let before = bench.dump().await;

    bench.at(9).requeue(&id).await.unwrap();

    let found = bench.now().inspect(&id).await.unwrap();
    assert_eq!((found.state, found.tries), (TaskState::Ready, (0, 0, 0)));
    assert!(!found.errors.is_empty());
    assert_eq!(bench.changes(&before).await, ["dead", "meta", "ready", "tries"]);
    assert!(bench.answer_wakeup().await);
    let again = bench.take(9, &worker, 2).await;
    assert_eq!((&again.id, again.token.fence > lease.token.fence), (&id, true));
}

async fn a_requeued_task_has_its_whole_time_to_start(bench: Bench) {
    let id = bench.add(0, job().expires_in(ms(90))).await;
    bench.at(5).cancel(&id).await.unwrap();
    bench.at(500).requeue(&id).await.unwrap();
    let worker = bench.worker(500, "w").await;
    let claimed = bench.claim(500, &worker, 1, 1).await;
    assert_eq!(claimed.grants[0].start_by, StartBy::At(START + 590));
    let lease = claimed.leases(&worker).remove(0);
    assert!(bench.release(500, &[given(&lease, Give::Misfit(ms(0)))]).await.is_empty());
    let claimed = bench.claim(500, &worker, 2, 1).await;
    assert_eq!(claimed.grants[0].tries, (0, 0, 1));
    assert_eq!(claimed.grants[0].start_by, StartBy::At(START + 590));
}

async fn a_cancelled_task_that_was_never_tried_has_its_old_place(bench: Bench) {
    let id = bench.add(0, job()).await;
    let other = bench.add(0, job()).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(9).requeue(&id).await.unwrap();
    assert_eq!(bench.state(&id).await, TaskState::Ready);
    assert_eq!(bench.ready_list().await, [&id, &other].map(TaskId::stored));
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("0"));
    assert!(!bench.names().await.contains(&"skips".to_owned()), "there is nothing to skip");
}

async fn a_task_that_was_tried_has_its_old_place_each_time_that_a_cancel_is_undone(bench: Bench) {
    let tried = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    bench.at(0).requeue(&tried).await.unwrap();
    let other = bench.add(0, job()).await;
    let before = bench.ready_list().await;
    assert_ne!(bench.list("ready").await[0], tried.stored(), "it has a stamp");
    for _ in 0..2 {
        bench.at(5).cancel(&tried).await.unwrap();
        bench.at(9).requeue(&tried).await.unwrap();
        assert_eq!(bench.ready_list().await, before, "the task has one row");
    }
    assert!(!bench.names().await.contains(&"skips".to_owned()), "there is nothing to skip");
    let claimed = bench.claim(9, &worker, 2, 2).await;
    let leases = claimed.leases(&worker);
    assert_eq!([&leases[0].id, &leases[1].id], [&tried, &other]);
    assert!(bench.complete(9, &leases.iter().map(done).collect::<Vec<_>>()).await.is_empty());
    bench.assert_sound().await;
}

async fn a_cancelled_task_that_can_expire_goes_to_the_end_of_the_ready_list(bench: Bench) {
    let id = bench.add(0, job().expires_in(ms(90_000))).await;
    let other = bench.add(0, job()).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(9).requeue(&id).await.unwrap();
    assert_eq!(bench.state(&id).await, TaskState::Ready);
    assert_eq!(
        bench.ready_list().await,
        [&id, &other, &id].map(TaskId::stored),
        "the tombstone stays in the list"
    );
}

async fn a_task_cancelled_before_its_time_is_ready_at_once(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(90_000)))).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(9).requeue(&id).await.unwrap();
    assert_eq!(bench.state(&id).await, TaskState::Ready);
    assert_eq!(bench.ready_list().await, [id.stored()]);
}

async fn a_ranked_task_is_ranked_again(bench: Bench) {
    let id = bench.add(0, job().priority(1)).await;
    let old = bench.score("priority", &id.stored()).await.unwrap();
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(500).requeue(&id).await.unwrap();
    assert_eq!(bench.score("priority", &id.stored()).await, Some(old + 500));
}

async fn the_requeue_of_another_state_is_refused_with_that_state(bench: Bench) {
    assert_wrong_state(&bench, &TaskId::new(bench.queue.clone()), "forgotten").await;
    let id = bench.add(0, job()).await;
    assert_wrong_state(&bench, &id, "ready").await;
    let delayed = bench.add(0, job().due(Due::In(ms(90_000)))).await;
    assert_wrong_state(&bench, &delayed, "delayed").await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert_wrong_state(&bench, &id, "working").await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(5)))]).await.is_empty());
    assert_wrong_state(&bench, &id, "retry").await;
    let lease = bench.take(5, &worker, 2).await;
    assert!(bench.complete(5, &[done(&lease)]).await.is_empty());
    assert_wrong_state(&bench, &id, "success").await;
}

async fn a_task_requeued_twice_is_in_the_ready_list_once(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(90_000)))).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(9).requeue(&id).await.unwrap();
    assert_wrong_state(&bench, &id, "ready").await;
}

async fn an_operation_that_is_sent_again_is_done_once(bench: Bench) {
    let id = bench.add(0, job()).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(9).requeue_as(&id, "first").await.unwrap();
    bench.at(9).requeue_as(&id, "first").await.unwrap();
    bench.at(9).cancel(&id).await.unwrap();
    let before = bench.dump().await;
    bench.at(9).requeue_as(&id, "first").await.unwrap();
    bench.assert_unchanged(&before).await;
    bench.at(9).requeue_as(&id, "second").await.unwrap();
    assert_eq!(bench.state(&id).await, TaskState::Ready);
}

on_both![
    an_operation_that_is_sent_again_is_done_once,
    a_dead_task_starts_again_and_keeps_its_history,
    a_requeued_task_has_its_whole_time_to_start,
    a_cancelled_task_that_was_never_tried_has_its_old_place,
    a_task_that_was_tried_has_its_old_place_each_time_that_a_cancel_is_undone,
    a_cancelled_task_that_can_expire_goes_to_the_end_of_the_ready_list,
    a_task_cancelled_before_its_time_is_ready_at_once,
    a_ranked_task_is_ranked_again,
    the_requeue_of_another_state_is_refused_with_that_state,
    a_task_requeued_twice_is_in_the_ready_list_once,
];
