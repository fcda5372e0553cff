//! `submit` that is sent again: the call is done once, no matter how often it arrives.

use std::time::Duration;

use optimus_core::{
    Submit as _, TaskId, TaskState,
    broker::{Batch, LEDGER_SLOTS, Receipt, Refusal},
};

use crate::{
    acts::{Grants, refusal},
    bench::Bench,
    dump::Dump,
    jobs::{job, jobs, ready},
};

/// The slots of a client's ledger.
const SLOTS: u64 = 16;

async fn a_call_that_is_sent_again_is_one_task(bench: Bench) {
    let owner = bench.add(0, job().biz_id("taken")).await;
    let tasks = [ready(job()), ready(job().biz_id("taken")), ready(job().biz_id("free"))];
    let first = bench.send(0, 40, &tasks).await.unwrap();
    assert_eq!(first, [Receipt::Created, Receipt::Duplicate(owner), Receipt::Created]);

    let before = bench.dump().await;
    assert_eq!(bench.send(9_000, 40, &tasks).await.unwrap(), first);
    bench.assert_unchanged(&before).await;
}

async fn a_call_that_is_sent_again_stays_one_task_after_the_task_has_run(bench: Bench) {
    let tasks = jobs(1);
    bench.send(0, 1, &tasks).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[crate::acts::done(&lease)]).await.is_empty());

    assert_eq!(bench.send(1, 1, &tasks).await.unwrap(), [Receipt::Created]);
    assert_eq!(bench.state(tasks[0].id()).await, TaskState::Success);
    assert!(bench.claim(1, &worker, 2, 1).await.ids().is_empty());
}

async fn the_ledger_answers_for_as_many_calls_as_it_has_slots(bench: Bench) {
    let batches: Vec<_> = (0..SLOTS).map(|_| jobs(1)).collect();
    for (number, tasks) in (1..).zip(&batches) {
        bench.send(0, number, tasks).await.unwrap();
    }
    let before = bench.dump().await;
    for (number, tasks) in (1..).zip(&batches) {
        assert_eq!(bench.send(1, number, tasks).await.unwrap(), [Receipt::Created]);
    }
    bench.assert_unchanged(&before).await;
}

async fn a_store_that_has_lost_an_answered_call_reports_it(bench: Bench) {
    let queue = &bench.queue;
    let send = async |number, since| {
        let tasks = jobs(1);
        let batch = Batch { queue, client: "c1", number, since, keep: false, tasks: &tasks };
        bench.at(0).submit(&batch).await.unwrap().lost
    };
    assert!(!send(1, 0).await);
    let older = bench.dump().await;
    assert!(!send(1 + SLOTS, 1).await);
    assert!(!send(1 + 3 * SLOTS, 1 + SLOTS).await, "a call in between was given up");
    bench.restore(&older).await;
    assert!(send(1 + 4 * SLOTS, 1 + 3 * SLOTS).await);
    assert!(!send(1 + 5 * SLOTS, 1 + 4 * SLOTS).await);
    bench.restore(&Dump::new()).await;
    assert!(send(1 + 6 * SLOTS, 1 + 5 * SLOTS).await);
}

async fn an_older_call_number_is_forgotten(bench: Bench) {
    let tasks = jobs(1);
    bench.send(0, 3, &tasks).await.unwrap();
    bench.send(0, 3 + SLOTS, &jobs(1)).await.unwrap();

    let before = bench.dump().await;
    assert_eq!(refusal(bench.send(0, 3, &tasks).await), Refusal::Forgotten);
    bench.assert_unchanged(&before).await;
}

async fn numbers_are_compared_as_numbers(bench: Bench) {
    bench.send(0, 9, &jobs(1)).await.unwrap();
    let receipts = bench.send(0, 9 + 10 * SLOTS, &jobs(1)).await.unwrap();
    assert_eq!(receipts, [Receipt::Created], "169 is above 9, though not as text");
}

async fn a_redis_that_restarted_empty_stores_the_submit(bench: Bench) {
    let lost = jobs(1);
    bench.send(0, 40, &lost).await.unwrap();
    bench.restore(&Dump::new()).await;

    let tasks = jobs(1);
    assert_eq!(bench.send(0, 41, &tasks).await.unwrap(), [Receipt::Created]);
    assert_eq!(bench.send(0, 40, &lost).await.unwrap(), [Receipt::Created]);
    for task in tasks.iter().chain(&lost) {
        assert_eq!(bench.state(task.id()).await, TaskState::Ready);
    }
}

async fn a_submit_that_finds_its_own_biz_id_is_created(bench: Bench) {
    let tasks = [ready(job().biz_id("mine"))];
    bench.send(0, 1, &tasks).await.unwrap();
    assert_eq!(bench.send(0, 2, &tasks).await.unwrap(), [Receipt::Created]);
}

async fn each_client_has_its_own_ledger(bench: Bench) {
    let [mine, yours] = [jobs(1), jobs(1)];
    bench.send(0, 1, &mine).await.unwrap();
    let (queue, number) = (&bench.queue, 1);
    let batch = Batch {
        queue,
        client: "c2",
        number,
        since: number.saturating_sub(LEDGER_SLOTS),
        keep: false,
        tasks: &yours,
    };
    assert_eq!(bench.at(0).submit(&batch).await.unwrap().receipts, [Receipt::Created]);
    assert_eq!(bench.state(yours[0].id()).await, TaskState::Ready);
}

/// A relay that was frozen may send what another one has sent before Redis lost the ledger.
async fn the_ledger_of_a_relay_must_have_the_mark_that_it_read(bench: Bench) {
    let (queue, client, broker) = (&bench.queue, "outbox-1", bench.at(0));
    let mark = broker.ledger_mark(queue, client).await.unwrap();
    assert_eq!(broker.ledger_mark(queue, client).await.unwrap(), mark, "it stays");
    let given = || job().id(TaskId::new(queue.clone())).into_submission().unwrap();
    let tasks = [given(), given()];
    let batch = Batch { queue, client, number: 16, since: 0, keep: false, tasks: &tasks };
    for _ in 0..2 {
        let submitted = broker.submit_marked(&batch, &mark).await.unwrap();
        assert_eq!(submitted.receipts, [Receipt::Created, Receipt::Created]);
    }
    bench.assert_sound().await;
    bench.restore(&Dump::new()).await;
    let late = broker.submit_marked(&batch, &mark).await;
    assert_eq!(refusal(late), Refusal::Stale);
    assert_eq!(bench.names().await, [""; 0], "nothing was written");
    let next = broker.ledger_mark(queue, client).await.unwrap();
    assert_ne!(next, mark);
    broker.submit_marked(&batch, &next).await.unwrap();
    assert_eq!(bench.state(tasks[1].id()).await, TaskState::Ready);
}

async fn the_owner_of_a_biz_id_is_noted_for_a_while(bench: Bench) {
    let broker = bench.at(0);
    let [id, owner, other] = [(); 3].map(|()| TaskId::new(bench.queue.clone()));
    broker.note_owners(&[], Duration::from_secs(60)).await.unwrap();
    broker.note_owners(&[(&id, &owner)], Duration::from_secs(60)).await.unwrap();
    assert_eq!(broker.owner_of(&id).await.unwrap(), Some(owner));
    assert_eq!(broker.owner_of(&other).await.unwrap(), None);
    bench.assert_sound().await;
}

on_both![
    a_call_that_is_sent_again_is_one_task,
    a_call_that_is_sent_again_stays_one_task_after_the_task_has_run,
    the_ledger_answers_for_as_many_calls_as_it_has_slots,
    a_store_that_has_lost_an_answered_call_reports_it,
    an_older_call_number_is_forgotten,
    numbers_are_compared_as_numbers,
    a_redis_that_restarted_empty_stores_the_submit,
    a_submit_that_finds_its_own_biz_id_is_created,
    each_client_has_its_own_ledger,
    the_ledger_of_a_relay_must_have_the_mark_that_it_read,
    the_owner_of_a_biz_id_is_noted_for_a_while,
];
