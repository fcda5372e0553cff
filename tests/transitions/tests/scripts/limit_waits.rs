//! Tasks that wait for a gate are Blocked, and every call of an operator knows them.

use optimus_core::{
    Submission, TaskState,
    broker::{Cancelled, Deleted},
};

use crate::{
    acts::{Grants, done, ids_of, ms},
    bench::Bench,
    jobs::{job, jobs, ready_at},
    limits::{a_second, at_most, one_in_10_s},
};

async fn waiting_tasks_are_found_listed_cancelled_and_deleted(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut ids = ids_of(&bench.add_limited(0, 4, &[at_most("m", 1)]).await);
    let others = ids_of(&bench.add_limited(0, 2, &[one_in_10_s("r")]).await);
    let lease = bench.claim(0, &worker, 1, 128).await.leases(&worker).remove(0);
    let mut listed = Vec::new();
    let mut cursor = String::new();
    for _ in 0..9 {
        let page = bench.now().list(&bench.queue, TaskState::Blocked, 2, &cursor).await.unwrap();
        listed.extend(page.rows.into_iter().map(|row| row.id));
        cursor = page.next;
        if cursor.is_empty() {
            break;
        }
    }
    listed.sort();
    let mut expected = [&ids[1..], &others[1..]].concat();
    expected.sort();
    assert_eq!(listed, expected);

    let broker = bench.at(1);
    assert_eq!(broker.cancel(&ids[1]).await.unwrap(), Cancelled::Done);
    assert_eq!(broker.delete_all(&bench.queue, &[&ids[2]]).await.unwrap(), [Deleted::Done]);
    assert_eq!(bench.field("meta", "tombstones").await, None, "they were not in the ready list");
    bench.assert_sound().await;
    broker.requeue(&ids[1]).await.unwrap();
    assert_eq!(bench.claim(2, &worker, 2, 128).await.ids(), []);
    assert_eq!(bench.state(&ids[1]).await, TaskState::Blocked);
    bench.assert_sound().await;
    bench.complete(3, &[done(&lease)]).await;
    let next = bench.take(4, &worker, 3).await;
    bench.complete(5, &[done(&next)]).await;
    ids.retain(|id| *id != lease.id && *id != next.id);
    assert_eq!(bench.take(6, &worker, 4).await.id, ids[0]);
}

async fn the_last_task_that_waits_leaves_no_key(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 3, &[at_most("m", 1), one_in_10_s("r")]).await);
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(bench.claim(0, &worker, 2, 128).await.ids(), []);
    bench.at(1).delete_all(&bench.queue, &[&ids[1], &ids[2]]).await.unwrap();
    bench.complete(2, &[done(&lease)]).await;
    bench.assert_no_limits_left().await;
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 0);
}

async fn a_queue_with_a_limit_that_was_set_is_not_retired(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 1, &[one_in_10_s("r")]).await;
    bench.submit(0, &jobs(1)).await;
    let claimed = bench.claim(0, &worker, 1, 128).await;
    bench.complete(0, &claimed.leases(&worker).iter().map(done).collect::<Vec<_>>()).await;
    bench.at(0).leave(&bench.queue, &worker).await.unwrap();
    let () = bench.raw(redis::cmd("DEL").arg(bench.key("ledger:c1"))).await;
    let (gate, limit) = (crate::limits::named("r"), one_in_10_s("r").limit);
    bench.at(0).set_limit(&bench.queue, &gate, Some(&limit)).await.unwrap();
    let late = bench.at(100_000_000);
    assert!(!late.retire(&bench.queue, ms(1)).await.unwrap());
    late.set_limit(&bench.queue, &gate, None).await.unwrap();
    assert!(late.retire(&bench.queue, ms(1)).await.unwrap());
    assert_eq!(bench.names().await, [""; 0]);
}

/// A gate may be named by tasks that bring different limits.
async fn a_task_that_waits_for_a_time_is_not_kept_by_one_that_waits_for_an_end(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let timed = ids_of(&bench.add_limited(0, 2, &[one_in_10_s("x")]).await);
    let first = bench.take(0, &worker, 1).await;
    assert_eq!(bench.claim(0, &worker, 2, 128).await.ids(), []);
    bench.complete(1, &[done(&first)]).await;
    let others = ids_of(&bench.add_limited(2, 2, &[at_most("m", 5), at_most("x", 1)]).await);
    assert_eq!(bench.claim(3, &worker, 3, 128).await.ids(), others[..1]);
    bench.assert_sound().await;
    assert_eq!(bench.claim(10_001, &worker, 4, 128).await.ids(), timed[1..]);
    bench.assert_sound().await;
}

/// The tasks of one submit are ready since the same ms. None waits for another at a second gate.
async fn classes_of_two_rates_do_not_send_each_other_from_gate_to_gate(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let (g, h) = (a_second("g", 10, 5), a_second("h", 10, 5));
    let kinds = [
        vec![at_most("1", 99), g.clone(), h.clone()],
        vec![at_most("2", 99), h.clone()],
        vec![at_most("3", 99), g.clone()],
    ];
    bench.add_limited(0, 5, &[g, h]).await;
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids().len(), 5);
    let tasks = kinds.iter().flat_map(|limits| [limits, limits]);
    let tasks: Vec<Submission> =
        tasks.map(|limits| ready_at(1, job()).limited_by(limits.clone())).collect();
    bench.submit(1, &tasks).await;
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    let mut started = 0;
    for (seq, at) in (3..).zip(601..631) {
        started += bench.claim(at, &worker, seq, 1).await.ids().len();
        bench.assert_sound().await;
    }
    assert_eq!(started, 6, "the gates have tokens for all");
}

/// A token is there, and each task waits for a permit, too.
async fn one_claim_moves_many_classes_to_the_gate_that_is_full(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let kinds = (0..90)
        .map(|kind| vec![at_most(&format!("{kind}"), 9), a_second("r", 2, 1), at_most("x", 2)]);
    let tasks: Vec<Submission> =
        kinds.map(|limits| ready_at(0, job()).limited_by(limits)).collect();
    bench.submit(0, &tasks).await;
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids().len(), 1);
    assert_eq!(bench.claim(500, &worker, 2, 1).await.ids().len(), 1);
    let mut empty = 0;
    for seq in 3..100 {
        let claimed = bench.claim(1_000 + seq, &worker, seq, 1).await;
        assert_eq!(claimed.ids(), [], "two run already");
        if !claimed.more {
            break;
        }
        empty += 1;
    }
    assert!(empty < 5, "{empty} claims found nothing and had to be repeated");
    bench.assert_sound().await;
}

/// The tasks of each kind wait apart from the others.
async fn a_permit_that_comes_back_starts_one_task_and_leaves_no_work(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    for kind in 0..9 {
        bench.add_limited(kind, 2, &[at_most(&format!("{kind}"), 9), at_most("x", 2)]).await;
    }
    let running = bench.claim(10, &worker, 1, 128).await.leases(&worker);
    assert_eq!(running.len(), 2);
    bench.complete(11, &[done(&running[0])]).await;
    let claimed = bench.claim(12, &worker, 2, 2).await;
    assert_eq!((claimed.ids().len(), claimed.more), (1, false), "all permits are taken again");
    bench.assert_sound().await;
}

on_both![
    a_permit_that_comes_back_starts_one_task_and_leaves_no_work,
    classes_of_two_rates_do_not_send_each_other_from_gate_to_gate,
    one_claim_moves_many_classes_to_the_gate_that_is_full,
    a_task_that_waits_for_a_time_is_not_kept_by_one_that_waits_for_an_end,
    waiting_tasks_are_found_listed_cancelled_and_deleted,
    the_last_task_that_waits_leaves_no_key,
    a_queue_with_a_limit_that_was_set_is_not_retired,
];
