//! `renew`: Working → Working, the heartbeat.

use std::collections::BTreeSet;

use optimus_core::{
    Due, WorkerId,
    broker::{Cancelled, Give, Refusal, Renewed},
};

use crate::{
    acts::{Grants, LEASE, LEASE_MS, done, given, ms, refusal},
    bench::{Bench, START},
    jobs::{job, jobs},
};

async fn renew(bench: &Bench, at: u64, worker: &WorkerId) -> Renewed {
    bench.at(at).renew(&bench.queue, worker, LEASE).await.expect("the worker is registered")
}

async fn one_write_renews_all_that_a_worker_holds(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    bench.claim(0, &worker, 1, 3).await;
    let before = bench.dump().await;
    let renewed = renew(&bench, 9, &worker).await;
    assert_eq!((renewed.now_ms, renewed.next_expiry), (START + 9, None));
    assert_eq!(bench.score("workers", "w").await, Some(START + 9 + LEASE_MS));
    assert_eq!(bench.changes(&before).await, ["meta", "workers"]);
    let watched = bench.field("meta", "watched_at").await;
    assert_eq!(watched, Some((START + 9).to_string()));
}

async fn it_returns_what_is_held_with_its_tokens(bench: Bench) {
    bench.submit(0, &jobs(4)).await;
    let worker = bench.worker(0, "w").await;
    let first = bench.claim(0, &worker, 1, 2).await;
    let second = bench.claim(0, &worker, 2, 2).await;
    let leases = first.leases(&worker);
    assert!(bench.complete(0, &[done(&leases[0])]).await.is_empty());

    let held: BTreeSet<_> = renew(&bench, 1, &worker).await.held.into_iter().map(pair).collect();
    let mut expected = vec![(leases[1].id.clone(), first.token)];
    expected.extend(second.ids().into_iter().map(|id| (id, second.token)));
    assert_eq!(held, expected.into_iter().map(pair).collect());
}

fn pair((id, token): (optimus_core::TaskId, optimus_core::Token)) -> (String, String) {
    (id.to_string(), token.to_string())
}

async fn it_returns_which_of_them_should_stop(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let (worker, other) = (bench.worker(0, "w").await, bench.worker(0, "other").await);
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    let others = bench.take(0, &other, 1).await;
    for id in [&leases[1].id, &others.id] {
        assert_eq!(bench.at(0).cancel(id).await.unwrap(), Cancelled::Requested);
    }
    let renewed = renew(&bench, 1, &worker).await;
    assert_eq!((renewed.stopping, renewed.workers), (vec![leases[1].id.clone()], 2));
    assert_eq!(renew(&bench, 1, &other).await.stopping, [others.id]);
    assert_eq!(
        renew(&bench, 2, &worker).await.stopping,
        [leases[1].id.clone()],
        "the request stays until the attempt ends"
    );
    assert!(bench.release(2, &[given(&leases[1], Give::Head)]).await.is_empty());
    assert!(renew(&bench, 3, &worker).await.stopping.is_empty());
}

async fn an_unknown_worker_has_lapsed(bench: Bench) {
    bench.worker(0, "w").await;
    let before = bench.dump().await;
    let stranger = WorkerId::from_stored("stranger");
    let answer = bench.at(1).renew(&bench.queue, &stranger, LEASE).await;
    assert_eq!(refusal(answer), Refusal::Lapsed);
    bench.assert_unchanged(&before).await;
}

async fn a_reaped_worker_has_lapsed_and_another_can_renew_a_late_lease(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let (reaped, late) = (bench.worker(0, "reaped").await, bench.worker(1, "late").await);
    let watcher = bench.worker(LEASE_MS / 2, "watcher").await;
    bench.take(0, &reaped, 1).await;
    let held = bench.take(1, &late, 1).await;
    bench.at(LEASE_MS).reap(&bench.queue, &watcher, LEASE, 128).await.unwrap();

    let answer = bench.at(LEASE_MS).renew(&bench.queue, &reaped, LEASE).await;
    assert_eq!(refusal(answer), Refusal::Lapsed);
    let over = LEASE_MS + 5;
    let answer = bench.at(over).claim(&bench.queue, &late, 2, 1).await;
    assert_eq!(refusal(answer), Refusal::Lapsed, "the worker's lease is over");
    assert_eq!(renew(&bench, over, &late).await.held, [(held.id, held.token)]);
    assert_eq!(bench.claim(over, &late, 2, 1).await.grants.len(), 1);
}

async fn it_returns_when_the_earliest_other_lease_is_over(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    assert_eq!(renew(&bench, 1, &worker).await.next_expiry, None);
    bench.worker_for(1, "other", ms(50)).await;
    assert_eq!(renew(&bench, 11, &worker).await.next_expiry, Some(ms(40)));
    assert_eq!(renew(&bench, 36, &worker).await.next_expiry, Some(ms(15)));
    assert_eq!(renew(&bench, 61, &worker).await.next_expiry, Some(ms(0)));
}

async fn the_heartbeat_of_an_idle_worker_repeats_the_wakeup_of_waiting_work(bench: Bench) {
    let (worker, busy) = (bench.worker(0, "w").await, bench.worker(0, "busy").await);
    for (seq, priority) in [(1, 0), (2, 5)] {
        bench.add(0, job().priority(priority)).await;
        assert!(bench.answer_wakeup().await, "a lost worker takes it");
        renew(&bench, 1, &worker).await;
        assert!(bench.answer_wakeup().await, "priority {priority}");
        bench.take(1, &busy, seq).await;
        renew(&bench, 2, &worker).await;
        assert!(!bench.answer_wakeup().await, "no work is left");
    }
    bench.add(2, job()).await;
    assert!(bench.answer_wakeup().await);
    renew(&bench, 3, &busy).await;
    assert!(!bench.answer_wakeup().await, "a busy worker claims when it has an idle slot");
}

async fn the_heartbeat_of_an_idle_worker_adds_a_wakeup_for_work_that_is_due(bench: Bench) {
    let (idle, frozen) = (bench.worker(0, "idle").await, bench.worker(0, "frozen").await);
    bench.add(0, job().due(Due::In(ms(50)))).await;
    assert!(bench.answer_wakeup().await, "the worker that will be frozen takes it");
    let claimed = bench.claim(0, &frozen, 1, 1).await;
    assert_eq!((claimed.grants.len(), claimed.next_due), (0, Some(ms(50))));
    renew(&bench, 49, &idle).await;
    assert!(!bench.answer_wakeup().await, "nothing is due");
    renew(&bench, 50, &idle).await;
    assert!(bench.answer_wakeup().await, "no worker has claimed it");
    bench.take(50, &idle, 1).await;
    assert_eq!(bench.claim(50, &frozen, 2, 1).await.grants.len(), 0);
    renew(&bench, 51, &frozen).await;
    assert!(!bench.answer_wakeup().await, "nothing is left");
}

/// Adds this many workers.
async fn others(bench: &Bench, count: usize) {
    let before = bench.at(0).workers(&bench.queue).await.unwrap().len();
    for number in before..before + count {
        bench.worker(0, &format!("other {number}")).await;
    }
}

async fn a_worker_of_many_that_holds_nothing_has_a_longer_lease(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (more, eighths) in [(7, 8), (1, 9), (7, 16), (64, 80), (8, 80)] {
        others(&bench, more).await;
        let renewed = renew(&bench, 9, &worker).await;
        let lease_ms = LEASE_MS * eighths / 8;
        assert_eq!(renewed.lease, ms(lease_ms), "{} workers", renewed.workers);
        let half = if eighths > 8 { ".5" } else { "" };
        let expiry = bench.exact_score("workers", "w").await;
        assert_eq!(expiry, Some(format!("{}{half}", START + 9 + lease_ms)));
    }
}

async fn a_worker_of_many_that_holds_a_task_has_a_usual_lease(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    others(&bench, 11).await;
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(renew(&bench, 9, &worker).await.lease, LEASE);
    assert_eq!(bench.score("workers", "w").await, Some(START + 9 + LEASE_MS));
    assert!(bench.complete(9, &[done(&lease)]).await.is_empty());
    assert_eq!(renew(&bench, 10, &worker).await.lease, ms(LEASE_MS * 12 / 8));
}

async fn a_grant_shortens_a_long_lease_and_an_empty_claim_does_not(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    others(&bench, 15).await;
    renew(&bench, 0, &worker).await;
    let long = bench.exact_score("workers", "w").await;
    assert!(bench.claim(1, &worker, 1, 1).await.grants.is_empty());
    assert_eq!(bench.exact_score("workers", "w").await, long, "nothing was granted");
    bench.submit(2, &jobs(2)).await;
    bench.claim(3, &worker, 2, 1).await;
    assert_eq!(bench.score("workers", "w").await, Some(START + 3 + LEASE_MS));
    let before = bench.score("workers", "w").await;
    bench.claim(4, &worker, 3, 1).await;
    assert_eq!(bench.score("workers", "w").await, before, "a claim renews nothing");
}

async fn a_long_lease_ends_at_its_own_time(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    others(&bench, 15).await;
    renew(&bench, 0, &worker).await;
    let (over, watcher) = (2 * LEASE_MS, WorkerId::from_stored("other 1"));
    for at in (0..=over).step_by(5_000) {
        let left = renew(&bench, at, &watcher).await.next_expiry;
        let lapsed = bench.at(at).reap(&bench.queue, &watcher, LEASE, 128).await.unwrap().lapsed;
        assert!(!lapsed.contains(&"w".to_owned()), "at {at}");
        if at > LEASE_MS {
            assert_eq!(left, Some(ms(over + 1 - at)), "at {at}");
        }
    }
    assert!(bench.claim(over, &worker, 1, 1).await.grants.is_empty(), "it lives");
    let reaped = bench.at(over + 1).reap(&bench.queue, &watcher, LEASE, 128).await.unwrap();
    assert_eq!(reaped.lapsed, ["w"]);
}

on_both![
    one_write_renews_all_that_a_worker_holds,
    it_returns_what_is_held_with_its_tokens,
    it_returns_which_of_them_should_stop,
    an_unknown_worker_has_lapsed,
    a_reaped_worker_has_lapsed_and_another_can_renew_a_late_lease,
    it_returns_when_the_earliest_other_lease_is_over,
    the_heartbeat_of_an_idle_worker_repeats_the_wakeup_of_waiting_work,
    the_heartbeat_of_an_idle_worker_adds_a_wakeup_for_work_that_is_due,
    a_worker_of_many_that_holds_nothing_has_a_longer_lease,
    a_worker_of_many_that_holds_a_task_has_a_usual_lease,
    a_grant_shortens_a_long_lease_and_an_empty_claim_does_not,
    a_long_lease_ends_at_its_own_time,
];
