//! `cancel`: Delayed | Ready | Retry → Cancelled; a Working task is asked to stop.

use optimus_core::{
    Due, TaskId, TaskState,
    broker::{BrokerError, Cancelled, Refusal, Verdict},
};
use redis::cmd;

use crate::{
    acts::{done, failed, ms},
    bench::{Bench, START},
    jobs::job,
};

async fn assert_terminal(bench: &Bench, id: &TaskId, state: &str) {
    let before = bench.dump().await;
    match bench.at(9).cancel(id).await {
        Err(BrokerError::Refused(Refusal::Terminal, named)) => assert_eq!(named, state),
        other => panic!("{other:?}"),
    }
    bench.assert_unchanged(&before).await;
}

async fn a_task_that_waits_is_cancelled_at_once(bench: Bench) {
    let ready = bench.add(0, job()).await;
    let retry = bench.add(0, job()).await;
    let ranked = bench.add(0, job().priority(-1)).await;
    let delayed = bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker(0, "w").await;
    bench.at(0).cancel(&ready).await.unwrap();
    bench.at(0).requeue(&ready).await.unwrap();
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(lease.id, retry, "the tombstone is passed over");
    assert!(bench.fail(0, &[failed(&lease, Verdict::Retry(ms(50)))]).await.is_empty());

    for (id, state, changed) in [
        (&ready, TaskState::Ready, &["cancelled", "meta", "skips"][..]),
        (&ranked, TaskState::Ready, &["cancelled", "priority"]),
        (&delayed, TaskState::Delayed, &["cancelled", "delayed"]),
        (&retry, TaskState::Retry, &["cancelled", "retry"]),
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

async fn cancelling_twice_is_no_mistake(bench: Bench) {
    let id = bench.add(0, job()).await;
    assert_eq!(bench.at(0).cancel(&id).await.unwrap(), Cancelled::Done);
    let before = bench.dump().await;
    assert_eq!(bench.at(9).cancel(&id).await.unwrap(), Cancelled::Done);
    bench.assert_unchanged(&before).await;
}

async fn a_running_task_is_asked_to_stop_and_its_worker_rung(bench: Bench) {
    let id = bench.add(0, job().biz_id("b")).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.wait(&id, "c").await;
    let before = bench.dump().await;

    assert_eq!(bench.at(9).cancel(&id).await.unwrap(), Cancelled::Requested);

    assert_eq!(bench.state(&id).await, TaskState::Working);
    assert_eq!(bench.changes(&before).await, ["cancel", "wake:w"]);
    let blocking = bench.now().blocking("bell");
    let standings = [(bench.queue.clone(), worker)];
    let rung = blocking.wait_for_stop(&standings, ms(5_000)).await.unwrap();
    assert_eq!(rung, Some(lease), "the attempt, and not another of the same task");
    bench.at(9).cancel(&id).await.unwrap();
    let ttl: i64 = bench.raw(cmd("PTTL").arg(bench.key("wake:w"))).await;
    assert!(ttl > 0, "a bell nobody hears goes by itself");
}

async fn what_has_ended_is_refused_by_name(bench: Bench) {
    let [good, bad] = [bench.add(0, job()).await, bench.add(0, job()).await];
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, Verdict::Dead)]).await.is_empty());
    assert_terminal(&bench, &good, "success").await;
    assert_terminal(&bench, &bad, "dead").await;
    assert_terminal(&bench, &TaskId::new(bench.queue.clone()), "forgotten").await;
}

async fn it_releases_the_biz_id_and_tells_who_waits(bench: Bench) {
    for wait in [0, 50] {
        bench.restore(&crate::dump::Dump::new()).await;
        let id = bench.add(0, job().biz_id("b").due(Due::In(ms(wait)))).await;
        bench.wait(&id, "c").await;
        bench.at(0).cancel(&id).await.unwrap();
        assert_eq!(bench.mail("c").await, [format!("{} cancelled", id.stored())]);
        assert!(!bench.names().await.contains(&"waiters".to_owned()));
        assert_eq!(bench.duplicate_of(0, job().biz_id("b")).await, None);
    }
}

async fn a_damaged_record_can_be_cancelled(bench: Bench) {
    let id = bench.add(0, job()).await;
    let () = bench.raw(cmd("HSET").arg(bench.key("tasks")).arg(id.stored()).arg("\0")).await;
    assert_eq!(bench.at(0).cancel(&id).await.unwrap(), Cancelled::Done);
}

on_both![
    a_task_that_waits_is_cancelled_at_once,
    cancelling_twice_is_no_mistake,
    a_running_task_is_asked_to_stop_and_its_worker_rung,
    what_has_ended_is_refused_by_name,
    it_releases_the_biz_id_and_tells_who_waits,
    a_damaged_record_can_be_cancelled,
];
