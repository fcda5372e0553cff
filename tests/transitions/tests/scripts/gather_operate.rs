//! What operators do to tasks that wait for a run.

use optimus_core::{
    TaskState,
    broker::{Cancelled, Deleted, FailureOutcome},
};

use crate::{
    acts::{Grants, failed, ids_of, ms},
    bench::Bench,
    gathers::{gathered, many_of, three_of},
    jobs::job,
};

async fn a_cancelled_call_leaves_its_key_and_no_tombstone(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [first, second] =
        [bench.add_gathered(0, &many_of("a")).await, bench.add_gathered(9, &many_of("a")).await];
    assert_eq!(bench.at(10).cancel(&first).await.unwrap(), Cancelled::Done);
    bench.assert_gathering("a", &[(&second, 9)], Some(10_000)).await;
    assert_eq!(bench.field("meta", "tombstones").await, None);
    assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("1"));
    assert_eq!(bench.claim(10_000, &worker, 1, 9).await.ids(), [second], "in the time left");
}

async fn a_key_without_calls_is_gone(bench: Bench) {
    for is_delete in [false, true] {
        let tasks = gathered(0, 3, &many_of("a"));
        bench.submit(0, &tasks).await;
        let ids = ids_of(&tasks);
        let all: Vec<_> = ids.iter().collect();
        if is_delete {
            let done = bench.at(1).delete_all(&bench.queue, &all).await.unwrap();
            assert_eq!(done, [Deleted::Done; 3]);
        } else {
            let done = bench.at(1).cancel_all(&bench.queue, &all).await.unwrap();
            assert_eq!(done, [Cancelled::Done; 3]);
        }
        bench.assert_gathering("a", &[], None).await;
        assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("0"));
    }
}

async fn the_next_leads_at_once_if_the_leader_is_cancelled_or_deleted(bench: Bench) {
    for is_delete in [false, true] {
        let key = if is_delete { "b" } else { "a" };
        let worker = bench.worker(0, "w").await;
        bench.submit(0, &gathered(0, 3, &three_of(key))).await;
        // The claim offers the leader after a plain task, which is all that it takes.
        bench.add(0, job()).await;
        let seq = if is_delete { 4 } else { 1 };
        assert_eq!(bench.claim(1, &worker, seq, 1).await.grants.len(), 1);
        let leader = bench.gathering(key).await.into_iter().find(|(_, at)| *at == -1).unwrap();
        let leader = optimus_core::TaskId::from_stored(bench.queue.clone(), &leader.0).unwrap();
        assert_eq!(bench.state(&leader).await, TaskState::Ready);
        if is_delete {
            bench.at(2).delete_all(&bench.queue, &[&leader]).await.unwrap();
        } else {
            assert_eq!(bench.at(2).cancel(&leader).await.unwrap(), Cancelled::Done);
        }
        assert_eq!(bench.due_run(key).await, Some(2));
        assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
        let next = bench.claim(3, &worker, seq + 1, 9).await.ids();
        assert_eq!(next.len(), 1);
        assert_ne!(next[0], leader);
    }
}

async fn a_requeued_call_gathers_again(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let id = bench.add_gathered(0, &many_of("a")).await;
    let lease = bench.run_of(10_000, &worker, 1).await.remove(0);
    bench.fail(10_001, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(20_000).requeue(&id).await.unwrap();
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert!(bench.claim(20_001, &worker, 2, 9).await.grants.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Blocked);
    let due = bench.due_run("a").await.expect("it waits");
    assert_eq!(bench.take(due, &worker, 3).await.id, id);
}

async fn a_client_can_wait_for_a_call_that_gathers(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = gathered(0, 3, &three_of("a"));
    bench.submit(0, &tasks).await;
    for task in &tasks {
        bench.wait(task.id(), "c1").await;
    }
    let run = bench.run_of(1, &worker, 1).await;
    bench.complete(2, &run.iter().map(crate::acts::done).collect::<Vec<_>>()).await;
    assert_eq!(bench.completions("c1").await.len(), 3);
}

async fn a_paused_queue_leads_no_run(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    bench.at(1).pause(&bench.queue).await.unwrap();
    assert!(bench.at(2).claim(&bench.queue, &worker, 1, 9).await.is_err());
    bench.at(3).resume(&bench.queue).await.unwrap();
    assert_eq!(bench.run_of(4, &worker, 2).await.len(), 3);
}

on_both! {
    a_cancelled_call_leaves_its_key_and_no_tombstone,
    a_key_without_calls_is_gone,
    the_next_leads_at_once_if_the_leader_is_cancelled_or_deleted,
    a_requeued_call_gathers_again,
    a_client_can_wait_for_a_call_that_gathers,
    a_paused_queue_leads_no_run,
}
