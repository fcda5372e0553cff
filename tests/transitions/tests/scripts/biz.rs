//! The biz id in all scripts: which task takes it, which task frees it, and that no other task
//! changes it.

use std::time::Duration;

use optimus_core::{
    Due, TaskId,
    broker::{Batch, BrokerError, Cancelled, FailureOutcome, LEDGER_SLOTS, Receipt, Refusal},
};
use redis::cmd;

use crate::{
    acts::{Grants, done_biz, failed, keep, ms},
    bench::{Bench, START},
    jobs::{Fragile, job, ready, ready_at},
};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MS: u64 = 3_600_000;

async fn a_window_that_is_over_does_not_free_the_biz_id_of_a_live_task(bench: Bench) {
    let owner = bench.add(0, job().biz_id("b").biz_window(ms(10))).await;
    let receipts = bench.submit(500, &[ready_at(500, job().biz_id("b"))]).await;
    assert_eq!(receipts, [Receipt::Duplicate(owner)]);
}

async fn of_two_equal_biz_ids_in_a_batch_the_first_is_accepted(bench: Bench) {
    let tasks = [
        ready(job().biz_id("a")),
        ready(job().biz_id("a")),
        ready(job().biz_id("b")),
        ready(job().biz_id("a").due(Due::In(ms(9)))),
    ];
    let first = tasks[0].id().clone();
    let receipts = bench.submit(0, &tasks).await;
    let taken = Receipt::Duplicate(first.clone());
    assert_eq!(receipts, [Receipt::Created, taken.clone(), Receipt::Created, taken]);
    assert_eq!(bench.ready_list().await, [first.stored(), tasks[2].id().stored()]);
    assert!(!bench.names().await.contains(&"delayed".to_owned()));
}

/// Brings the one task of the queue from `Ready` to the named state.
async fn bring_to(bench: &Bench, state: &str, id: &TaskId) {
    if state == "cancelled" {
        assert_eq!(bench.at(0).cancel(id).await.unwrap(), Cancelled::Done);
        return;
    }
    if ["ready", "delayed"].contains(&state) {
        return;
    }
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let outcome = match state {
        "working" => return,
        "success" => {
            assert!(bench.complete(0, &[done_biz(&lease, "o-17")]).await.is_empty());
            return;
        }
        "retry" => FailureOutcome::Retry(ms(9_000)),
        "dead" => FailureOutcome::Dead,
        _ => FailureOutcome::Cancelled,
    };
    assert!(bench.fail(0, &[failed(&lease, outcome)]).await.is_empty());
}

async fn check_taken(bench: &Bench, state: &str, taken: bool) {
    let wait = if state == "delayed" { ms(9_000) } else { ms(0) };
    let id = bench.add(0, job().biz_id("o-17").due(Due::In(wait))).await;
    bring_to(bench, state, &id).await;
    let owner = bench.duplicate_of(0, job().biz_id("o-17")).await;
    assert_eq!(owner, taken.then_some(id), "{state}");
}

async fn a_biz_id_is_taken_while_its_task_lives_or_is_dead(bench: Bench) {
    for state in ["ready", "delayed", "working", "retry", "dead"] {
        bench.restore(&crate::dump::Dump::new()).await;
        check_taken(&bench, state, true).await;
    }
}

async fn a_biz_id_is_free_once_its_task_succeeded_or_was_cancelled(bench: Bench) {
    for state in ["success", "cancelled", "cancelled by its handler"] {
        bench.restore(&crate::dump::Dump::new()).await;
        check_taken(&bench, state, false).await;
    }
}

async fn a_window_keeps_the_biz_id_of_a_success_until_it_is_over(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17").biz_window(HOUR)).await;
    bring_to(&bench, "success", &id).await;
    let ttl: i64 = bench.raw(cmd("PTTL").arg(bench.key("biz:job:o-17"))).await;
    assert!((3_500_000..=3_600_000).contains(&ttl), "the mark expires: {ttl}");

    let again = || job().biz_id("o-17");
    assert_eq!(bench.duplicate_of(HOUR_MS - 1, again()).await, Some(id));
    assert_eq!(bench.duplicate_of(HOUR_MS, again()).await, None);
}

async fn a_window_that_is_over_at_the_success_releases_at_once(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17").biz_window(ms(10))).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(
        bench.duplicate_of(11, job().biz_id("o-17")).await,
        Some(id),
        "the task is still live"
    );
    assert!(bench.complete(11, &[done_biz(&lease, "o-17")]).await.is_empty());
    assert!(!bench.names().await.contains(&"biz:job:o-17".to_owned()));
}

async fn a_window_does_not_keep_the_biz_id_of_a_cancelled_task(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17").biz_window(HOUR)).await;
    bring_to(&bench, "cancelled", &id).await;
    assert_eq!(bench.duplicate_of(1, job().biz_id("o-17")).await, None);
}

async fn no_task_releases_the_biz_id_of_another(bench: Bench) {
    let old = bench.add(0, job().biz_id("o-17")).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    // This is the state after a repair by an operator: another task holds the biz id now.
    let () = bench.raw(cmd("DEL").arg(bench.key("biz:job:o-17"))).await;
    let new = bench.add(0, job().biz_id("o-17")).await;
    let mark: String = bench.raw(cmd("GET").arg(bench.key("biz:job:o-17"))).await;
    let before = bench.dump().await;

    assert!(bench.complete(1, &[done_biz(&lease, "o-17")]).await.is_empty());
    assert_eq!(bench.duplicate_of(1, job().biz_id("o-17")).await, Some(new.clone()));
    bench.restore(&before).await;
    assert!(bench.fail(1, &[failed(&lease, FailureOutcome::Cancelled)]).await.is_empty());
    assert_eq!(bench.duplicate_of(1, job().biz_id("o-17")).await, Some(new.clone()));

    let purged = bench.at(2).purge(&bench.queue, keep(0, HOUR), HOUR).await.unwrap();
    assert_eq!((purged.tasks, bench.state(&old).await.as_str()), (1, "forgotten"));
    let kept: String = bench.raw(cmd("GET").arg(bench.key("biz:job:o-17"))).await;
    assert_eq!(kept, mark);
}

async fn a_biz_id_whose_task_is_gone_is_free(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17")).await;
    let () = bench.raw(cmd("HDEL").arg(bench.key("tasks")).arg(id.stored())).await;
    assert_eq!(bench.duplicate_of(0, job().biz_id("o-17")).await, None);
}

async fn a_biz_id_belongs_to_one_task_name(bench: Bench) {
    bench.add(0, job().biz_id("o-17")).await;
    let other = optimus_core::Call::new(Fragile).biz_id("o-17");
    assert_eq!(bench.duplicate_of(0, other).await, None);
}

async fn a_biz_id_may_be_any_text(bench: Bench) {
    for text in ["{x}:1", "a b;0;", "ü=☃", "%d\n%s", "1=2", "\u{0}"] {
        let id = bench.add(0, job().biz_id(text)).await;
        assert_eq!(bench.duplicate_of(0, job().biz_id(text)).await, Some(id), "{text:?}");
    }
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 128).await;
    let ids = claimed.ids();
    for id in &ids {
        bench.at(0).cancel(id).await.unwrap();
    }
    let leases = claimed.leases(&worker);
    let failures: Vec<_> = leases.iter().map(|l| failed(l, FailureOutcome::Retry(ms(1)))).collect();
    assert!(bench.fail(0, &failures).await.is_empty());
    assert!(
        !bench.names().await.iter().any(|name| name.starts_with("biz:")),
        "each task freed its biz id"
    );
}

async fn a_requeue_takes_the_biz_id_again_or_names_its_owner(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17").biz_window(HOUR)).await;
    bring_to(&bench, "cancelled", &id).await;
    bench.at(50).requeue(&id).await.unwrap();
    assert_eq!(bench.duplicate_of(60, job().biz_id("o-17")).await, Some(id.clone()));

    bench.at(70).cancel(&id).await.unwrap();
    let owner = bench.add(80, job().biz_id("o-17")).await;
    let before = bench.dump().await;
    match bench.at(90).requeue(&id).await {
        Err(BrokerError::Refused(Refusal::Duplicate, named)) => assert_eq!(named, owner.stored()),
        other => panic!("{other:?}"),
    }
    bench.assert_unchanged(&before).await;
}

async fn a_requeue_whose_biz_id_is_in_a_window_returns_its_end(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17")).await;
    bench.at(0).cancel(&id).await.unwrap();
    let owner = bench.add(0, job().biz_id("o-17").biz_window(HOUR)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(5, &[done_biz(&lease, "o-17")]).await.is_empty());
    match bench.at(90).requeue(&id).await {
        Err(BrokerError::Refused(Refusal::Duplicate, detail)) => {
            assert_eq!(detail, format!("{} {}", owner.stored(), START + HOUR_MS));
        }
        other => panic!("{other:?}"),
    }
    bench.at(HOUR_MS).requeue(&id).await.unwrap();
}

async fn a_requeue_starts_the_window_again(bench: Bench) {
    let id = bench.add(0, job().biz_id("o-17").biz_window(HOUR)).await;
    bring_to(&bench, "dead", &id).await;
    bench.at(HOUR_MS).requeue(&id).await.unwrap();
    let worker = bench.worker(HOUR_MS, "w").await;
    let lease = bench.take(HOUR_MS, &worker, 2).await;
    assert!(bench.complete(HOUR_MS, &[done_biz(&lease, "o-17")]).await.is_empty());
    let again = || job().biz_id("o-17");
    assert_eq!(bench.duplicate_of(2 * HOUR_MS - 1, again()).await, Some(id));
    assert_eq!(bench.duplicate_of(2 * HOUR_MS, again()).await, None);
}

async fn a_new_number_for_a_taken_biz_id_names_the_owner_again(bench: Bench) {
    let owner = bench.add(0, job().biz_id("o-17")).await;
    let tasks = [ready(job().biz_id("o-17"))];
    let (queue, keep) = (&bench.queue, false);
    for number in [7, 8] {
        let batch = Batch {
            queue,
            client: "c2",
            number,
            since: number.saturating_sub(LEDGER_SLOTS),
            keep,
            tasks: &tasks,
        };
        let receipts = bench.at(0).submit(&batch).await.unwrap();
        assert_eq!(receipts.receipts, [Receipt::Duplicate(owner.clone())]);
    }
    assert_eq!(
        bench.state(tasks[0].id()).await.as_str(),
        "forgotten",
        "the store has no data of the task"
    );
}

on_both![
    a_window_that_is_over_does_not_free_the_biz_id_of_a_live_task,
    of_two_equal_biz_ids_in_a_batch_the_first_is_accepted,
    a_biz_id_is_taken_while_its_task_lives_or_is_dead,
    a_biz_id_is_free_once_its_task_succeeded_or_was_cancelled,
    a_window_keeps_the_biz_id_of_a_success_until_it_is_over,
    a_window_that_is_over_at_the_success_releases_at_once,
    a_window_does_not_keep_the_biz_id_of_a_cancelled_task,
    no_task_releases_the_biz_id_of_another,
    a_biz_id_whose_task_is_gone_is_free,
    a_biz_id_belongs_to_one_task_name,
    a_biz_id_may_be_any_text,
    a_requeue_takes_the_biz_id_again_or_names_its_owner,
    a_requeue_whose_biz_id_is_in_a_window_returns_its_end,
    a_requeue_starts_the_window_again,
    a_new_number_for_a_taken_biz_id_names_the_owner_again,
];
