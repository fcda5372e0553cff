//! `cancel`: Delayed | Ready | Retry → Cancelled; a Working task is asked to stop.

use optimus_core::{
    Due, Lease, TaskId, TaskState, WorkerId,
    broker::{Asked, Cancelled, FailureOutcome, Give},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, failed, given, ms},
    bench::{Bench, START},
    jobs::{job, jobs},
};

async fn assert_terminal(bench: &Bench, id: &TaskId, state: &str) {
    let before = bench.dump().await;
    let done = bench.at(9).cancel(id).await.unwrap();
    assert_eq!(done, Cancelled::Ended(TaskState::from_word(state).unwrap()));
    bench.assert_unchanged(&before).await;
}

async fn a_task_that_waits_is_cancelled_at_once(bench: Bench) {
    let ready = bench.add(0, job().expires_in(ms(90_000))).await;
    let retry = bench.add(0, job()).await;
    let ranked = bench.add(0, job().priority(-1)).await;
    let delayed = bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker(0, "w").await;
    bench.at(0).cancel(&ready).await.unwrap();
    bench.at(0).requeue(&ready).await.unwrap();
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(lease.id, retry, "the tombstone is skipped");
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(50)))]).await.is_empty());

    for (id, state, changed) in [
        (&ready, TaskState::Ready, &["cancelled", "meta", "skips"][..]),
        (&ranked, TaskState::Ready, &["cancelled", "meta", "priority"]),
        (&delayed, TaskState::Delayed, &["cancelled", "delayed", "meta", "tries"]),
        (&retry, TaskState::Retry, &["cancelled", "meta", "retry", "tries"]),
    ] {
        assert_eq!(bench.state(id).await, state);
        let before = bench.dump().await;
        assert_eq!(bench.at(9).cancel(id).await.unwrap(), Cancelled::Done);
        assert_eq!(bench.state(id).await, TaskState::Cancelled);
        assert_eq!(bench.score("cancelled", &id.stored()).await, Some(START + 9));
        assert_eq!(bench.changes(&before).await, changed, "from {state}");
    }
    assert!(bench.claim(100, &worker, 3, 128).await.grants.is_empty());
}

async fn cancelling_twice_is_not_an_error(bench: Bench) {
    let id = bench.add(0, job()).await;
    assert_eq!(bench.at(0).cancel(&id).await.unwrap(), Cancelled::Done);
    let before = bench.dump().await;
    assert_eq!(bench.at(9).cancel(&id).await.unwrap(), Cancelled::Done);
    bench.assert_unchanged(&before).await;
}

async fn a_task_that_can_expire_and_is_cancelled_and_requeued_twice_is_ready_once(bench: Bench) {
    let id = bench.add(0, job().expires_in(ms(90_000))).await;
    let worker = bench.worker(0, "w").await;
    let lease = &bench.claim(0, &worker, 1, 8).await.leases(&worker)[0];
    assert!(bench.fail(0, &[failed(lease, FailureOutcome::Retry(ms(1)))]).await.is_empty());
    let lease = &bench.claim(1, &worker, 2, 8).await.leases(&worker)[0];
    assert!(bench.release(1, &[given(lease, Give::Head)]).await.is_empty());
    for at in [2, 4] {
        bench.at(at).cancel(&id).await.unwrap();
        bench.at(at + 1).requeue(&id).await.unwrap();
    }
    let other = bench.add(6, job()).await;
    assert_eq!(bench.claim(7, &worker, 3, 8).await.ids(), [id, other]);
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("0"));
    bench.assert_sound().await;
}

async fn a_running_task_is_asked_to_stop_and_its_worker_woken(bench: Bench) {
    let id = bench.add(0, job().biz_id("b")).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.wait(&id, "c").await;
    let before = bench.dump().await;

    assert_eq!(bench.at(9).cancel(&id).await.unwrap(), Cancelled::Requested);

    assert_eq!(bench.state(&id).await, TaskState::Working);
    assert_eq!(bench.changes(&before).await, ["cancel", "waiters", "wake:w"]);
    let blocking = bench.now().blocking("wakeups");
    let registrations = [(bench.queue.clone(), worker)];
    let process = (&bench.queue, &WorkerId::from_stored("process"));
    let asked = blocking.wait_until_asked(&registrations, process, ms(5_000)).await.unwrap();
    assert_eq!(asked, Some(Asked::Stop(lease)), "the attempt, and not another of the same task");
    bench.at(9).cancel(&id).await.unwrap();
    let ttl: i64 = bench.raw(cmd("PTTL").arg(bench.key("wake:w"))).await;
    assert!(ttl > 0, "a wakeup list that is not read expires");
}

async fn the_cancel_of_an_ended_task_is_refused_with_its_state(bench: Bench) {
    let [good, bad] = [bench.add(0, job()).await, bench.add(0, job()).await];
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert_terminal(&bench, &good, "success").await;
    assert_terminal(&bench, &bad, "dead").await;
    assert_terminal(&bench, &TaskId::new(bench.queue.clone()), "forgotten").await;
}

async fn it_releases_the_biz_id_and_completes_waits(bench: Bench) {
    for wait in [0, 50] {
        bench.restore(&crate::dump::Dump::new()).await;
        let id = bench.add(0, job().biz_id("b").due(Due::In(ms(wait)))).await;
        bench.wait(&id, "c").await;
        bench.at(0).cancel(&id).await.unwrap();
        assert_eq!(bench.completions("c").await, [format!("{} cancelled", id.stored())]);
        assert!(!bench.names().await.contains(&"waiters".to_owned()));
        assert_eq!(bench.duplicate_of(0, job().biz_id("b")).await, None);
    }
}

async fn each_of_many_is_cancelled_alone_and_one_named_twice_only_once(bench: Bench) {
    let [held, idle] = [bench.worker(0, "held").await, bench.worker(0, "idle").await];
    let mut running = Vec::new();
    for seq in 1..=3 {
        bench.add(0, job()).await;
        let worker = if seq == 3 { &idle } else { &held };
        running.push(bench.take(0, worker, seq).await);
    }
    bench.add(0, job()).await;
    let good = bench.take(0, &held, 4).await;
    assert!(bench.complete(0, &[done(&good)]).await.is_empty());
    let ready = bench.add(0, job().biz_id("a")).await;
    let ranked = bench.add(0, job().priority(2)).await;
    let delayed = bench.add(0, job().due(Due::In(ms(50)))).await;
    let unknown = TaskId::new(bench.queue.clone());
    bench.wait(&ready, "c").await;
    bench.wait(&ranked, "c").await;

    let [first, second, third] = [&running[0].id, &running[1].id, &running[2].id];
    let ids = [&ready, first, &good.id, &ranked, &ready, &delayed, third, &unknown, second, first];
    let (cancelled, asked) = (Cancelled::Done, Cancelled::Requested);
    let (success, unknown) =
        (Cancelled::Ended(TaskState::Success), Cancelled::Ended(TaskState::Forgotten));
    assert_eq!(
        bench.at(9).cancel_all(&bench.queue, &ids).await.unwrap(),
        [cancelled, asked, success, cancelled, cancelled, cancelled, asked, unknown, asked, asked]
    );
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("1"), "named twice");
    let completion = |id: &TaskId| format!("{} cancelled", id.stored());
    assert_eq!(bench.completions("c").await, [completion(&ready), completion(&ranked)]);
    let stop = |lease: &Lease| format!("{} {}", lease.id.stored(), lease.token);
    assert_eq!(bench.list("wake:held").await, [stop(&running[0]), stop(&running[1])]);
    assert_eq!(bench.list("wake:idle").await, [stop(&running[2])]);
    assert_eq!(bench.duplicate_of(9, job().biz_id("a")).await, None, "the biz id is free");
    for id in [&ready, &ranked, &delayed] {
        assert_eq!(bench.state(id).await, TaskState::Cancelled);
    }
}

/// The scripts look up a few of many tasks, all tasks of one worker, and one of few in different
/// ways.
async fn the_holder_of_a_task_is_found_among_many_tasks(bench: Bench) {
    let tasks = jobs(140);
    bench.submit(0, &tasks).await;
    let (many, few) = (bench.worker(0, "many").await, bench.worker(0, "few").await);
    let held = bench.claim(0, &many, 1, 128).await.ids();
    let others = bench.claim(0, &few, 1, 5).await.ids();
    let cancel = async |ids: &[&TaskId]| {
        let done = bench.at(9).cancel_all(&bench.queue, ids).await.unwrap();
        done.iter().filter(|done| **done == Cancelled::Requested).count()
    };
    assert_eq!(cancel(&[&held[100], &others[4]]).await, 2);
    assert_eq!(cancel(&[&others[3]]).await, 1);
    let all: Vec<&TaskId> = others[..3].iter().chain(&held[..100]).collect();
    assert_eq!(cancel(&all).await, 103);
    assert_eq!(bench.list("wake:many").await.len(), 101);
    assert_eq!(bench.list("wake:few").await.len(), 5);
}

async fn a_damaged_record_can_be_cancelled(bench: Bench) {
    let id = bench.add(0, job()).await;
    let () = bench.raw(cmd("HSET").arg(bench.key("tasks")).arg(id.stored()).arg("\0")).await;
    assert_eq!(bench.at(0).cancel(&id).await.unwrap(), Cancelled::Done);
}

on_both![
    a_task_that_waits_is_cancelled_at_once,
    cancelling_twice_is_not_an_error,
    a_task_that_can_expire_and_is_cancelled_and_requeued_twice_is_ready_once,
    a_running_task_is_asked_to_stop_and_its_worker_woken,
    the_cancel_of_an_ended_task_is_refused_with_its_state,
    it_releases_the_biz_id_and_completes_waits,
    each_of_many_is_cancelled_alone_and_one_named_twice_only_once,
    the_holder_of_a_task_is_found_among_many_tasks,
    a_damaged_record_can_be_cancelled,
];
