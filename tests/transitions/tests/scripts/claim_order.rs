//! The order of `claim`: the ready list, ranked tasks, and the tombstones that a cancel leaves.

use std::slice;

use optimus_core::{Call, Due, Submit, TaskId, TaskState, broker::Give};

use crate::{
    acts::{Grants, given, ids_of, keep, ms},
    bench::Bench,
    jobs::{Job, job, jobs},
};

/// The waiting time that equals one step of priority.
const STEP_MS: u64 = 60_000;

/// Returns all tasks that a new worker can claim.
async fn claim_all(bench: &Bench, at: u64) -> Vec<TaskId> {
    let worker = bench.worker(at, "w").await;
    bench.claim(at, &worker, 1, 128).await.ids()
}

async fn ready(bench: &Bench) -> u64 {
    bench.now().counts(&bench.queue).await.unwrap().ready
}

async fn first_come_first_served(bench: Bench) {
    let (first, second) = (jobs(3), jobs(3));
    bench.submit(0, &first).await;
    bench.submit(0, &second).await;
    assert_eq!(claim_all(&bench, 0).await, [ids_of(&first), ids_of(&second)].concat());
}

async fn a_priority_is_worth_a_minute_per_step_and_ages(bench: Bench) {
    let plain = bench.add(0, job()).await;
    let high = bench.add(5 * STEP_MS - 1, job().priority(5)).await;
    let tied = bench.add(5 * STEP_MS, job().priority(5)).await;
    let late = bench.add(5 * STEP_MS + 1, job().priority(5)).await;
    let low = bench.add(0, job().priority(-1)).await;
    let after_low = bench.add(STEP_MS + 1, job()).await;
    let claimed = claim_all(&bench, 6 * STEP_MS).await;
    assert_eq!(
        claimed,
        [high, plain, tied, late, low, after_low],
        "at a tie the ready list comes first"
    );
}

async fn a_task_with_a_given_id_is_ready_since_its_submit(bench: Bench) {
    let low = bench.add(0, job().priority(-100)).await;
    let ids = [
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "886313e1-3b8a-5372-9b90-0c9aee199e5d",
        // The ids have version 7 and times in 2001 and 2033.
        "00e8d4a5-1000-774b-bcce-b302099a8057",
        "01d00000-0000-774b-bcce-b302099a8057",
    ];
    let mut given = Vec::new();
    for id in ids {
        let id: TaskId = format!("{}/{id}", bench.queue).parse().unwrap();
        let task = job().id(id.clone()).into_submission().unwrap();
        bench.submit(0, slice::from_ref(&task)).await;
        given.push(id);
    }
    let plain = bench.add(0, job()).await;
    let high = bench.add(STEP_MS - 1, job().priority(1)).await;
    let claimed = claim_all(&bench, STEP_MS).await;
    assert_eq!(claimed, [vec![high], given, vec![plain, low]].concat());
}

async fn a_released_task_whose_id_has_no_time_is_the_next(bench: Bench) {
    let id: TaskId =
        format!("{}/f47ac10b-58cc-4372-a567-0e02b2c3d479", bench.queue).parse().unwrap();
    let task = job().id(id.clone()).into_submission().unwrap();
    bench.submit(0, slice::from_ref(&task)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let high = bench.add(0, job().priority(100)).await;
    assert!(bench.release(0, &[given(&lease, Give::Head)]).await.is_empty());
    assert_eq!(bench.claim(0, &worker, 2, 2).await.ids(), [id, high]);
}

async fn equal_priorities_keep_their_order(bench: Bench) {
    let mut ids = Vec::new();
    for at in 0..5 {
        ids.push(bench.add(at, job().priority(7)).await);
    }
    assert_eq!(claim_all(&bench, 5).await, ids);
}

async fn single_claims_return_ranked_and_plain_tasks_in_the_same_order(bench: Bench) {
    let mut expected = Vec::new();
    for step in 0..6 {
        let call = if step % 2 == 0 { job() } else { job().priority(1) };
        let at = if step % 2 == 0 { step } else { step + STEP_MS };
        expected.push(bench.add(at, call).await);
    }
    let worker = bench.worker(STEP_MS, "w").await;
    let mut claimed = Vec::new();
    for seq in 1..=6 {
        claimed.extend(bench.claim(STEP_MS, &worker, seq, 1).await.ids());
    }
    assert_eq!(claimed, expected);
}

async fn a_tombstone_is_not_a_ready_task_and_is_removed(bench: Bench) {
    let tasks = jobs(4);
    bench.submit(0, &tasks).await;
    for i in [0, 2] {
        bench.at(0).cancel(tasks[i].id()).await.unwrap();
    }
    assert_eq!((ready(&bench).await, bench.ready_list().await.len()), (2, 4));
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("2"));
    let listed = bench.now().list(&bench.queue, TaskState::Ready, 10, "").await.unwrap();
    let page: Vec<_> = listed.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(page, [tasks[1].id().clone(), tasks[3].id().clone()]);

    let worker = bench.worker(0, "w").await;
    assert_eq!(bench.claim(0, &worker, 1, 1).await.ids(), [tasks[1].id().clone()]);
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("1"));
    assert_eq!(ready(&bench).await, 1);
    assert_eq!(bench.claim(0, &worker, 2, 2).await.ids(), [tasks[3].id().clone()]);
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("0"));
    assert_eq!(bench.state(tasks[0].id()).await, TaskState::Cancelled);
}

async fn a_claim_passes_128_tombstones(bench: Bench) {
    let tasks = jobs(300);
    bench.submit(0, &tasks).await;
    for task in &tasks[..299] {
        bench.at(0).cancel(task.id()).await.unwrap();
    }
    let worker = bench.worker(0, "w").await;
    for seq in 1..=2 {
        let claimed = bench.claim(0, &worker, seq, 1).await;
        assert!(claimed.grants.is_empty() && claimed.more, "the worker has to claim again");
    }
    let claimed = bench.claim(0, &worker, 3, 1).await;
    assert_eq!((claimed.ids(), claimed.more), (vec![tasks[299].id().clone()], false));
}

/// A task that has a second entry when it is requeued.
fn mortal() -> Call<Job> {
    job().expires_in(ms(90_000))
}

async fn no_task_overtakes_those_after_tombstones(bench: Bench) {
    let (line, due) = (jobs(4), job().due(Due::In(ms(5))));
    bench.submit(0, &line).await;
    let ranked = bench.add(0, job().priority(-1)).await;
    let due = bench.add(0, due).await;
    for task in &line[..3] {
        bench.at(0).cancel(task.id()).await.unwrap();
    }
    let worker = bench.worker(0, "w").await;
    let mut claimed = Vec::new();
    for seq in 1..=5 {
        claimed.extend(bench.claim(9, &worker, seq, 1).await.ids());
    }
    assert_eq!(claimed, [line[3].id().clone(), due, ranked]);
}

async fn a_page_of_ready_tasks_has_no_purged_task_and_none_twice(bench: Bench) {
    let tasks = jobs(3);
    bench.submit(0, &tasks).await;
    bench.at(0).cancel(tasks[0].id()).await.unwrap();
    bench.at(0).purge(&bench.queue, keep(0, ms(0)), ms(1)).await.unwrap();
    bench.at(0).cancel(tasks[1].id()).await.unwrap();
    bench.at(0).requeue(tasks[1].id()).await.unwrap();
    let listed = bench.now().list(&bench.queue, TaskState::Ready, 10, "").await.unwrap();
    let page: Vec<_> = listed.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(page, [tasks[1].id().clone(), tasks[2].id().clone()]);
}

async fn tasks_that_were_cancelled_and_requeued_are_listed_once(bench: Bench) {
    let tasks = jobs(20);
    bench.submit(0, &tasks).await;
    for task in &tasks {
        bench.at(0).cancel(task.id()).await.unwrap();
        bench.at(0).requeue(task.id()).await.unwrap();
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = bench.now().list(&bench.queue, TaskState::Ready, 8, &cursor).await.unwrap();
        listed.extend(page.rows.into_iter().map(|row| row.id));
        cursor = page.next;
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(listed, tasks.iter().map(|task| task.id().clone()).collect::<Vec<_>>());
}

async fn a_task_cancelled_while_ranked_leaves_no_tombstone(bench: Bench) {
    let id = bench.add(0, job().priority(1)).await;
    bench.at(0).cancel(&id).await.unwrap();
    assert_eq!(bench.field("meta", "tombstones").await, None);
    bench.at(0).requeue(&id).await.unwrap();
    assert_eq!(claim_all(&bench, 0).await, [id]);
}

async fn cancelled_and_requeued_it_runs_once_with_two_workers(bench: Bench) {
    let id = bench.add(0, mortal()).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(0).requeue(&id).await.unwrap();
    assert_eq!((ready(&bench).await, bench.ready_list().await.len()), (1, 2));

    let (one, two) = (bench.worker(0, "one").await, bench.worker(0, "two").await);
    let mut claimed = Vec::new();
    for seq in 1..=2 {
        claimed.extend(bench.claim(0, &one, seq, 1).await.ids());
        claimed.extend(bench.claim(0, &two, seq, 1).await.ids());
    }
    assert_eq!(claimed, [id]);
    assert_eq!((ready(&bench).await, bench.ready_list().await.len()), (0, 0));
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("0"));
}

async fn requeued_twice_within_a_millisecond_it_runs_once(bench: Bench) {
    let id = bench.add(0, mortal()).await;
    for _ in 0..3 {
        bench.at(0).cancel(&id).await.unwrap();
        bench.at(0).requeue(&id).await.unwrap();
    }
    assert_eq!(bench.field("skips", &id.stored()).await.as_deref(), Some("3"));
    assert_eq!(claim_all(&bench, 0).await, [id]);
    assert_eq!((bench.ready_list().await.len(), ready(&bench).await), (0, 0));
    assert!(!bench.names().await.contains(&"skips".to_owned()), "there is nothing to skip");
}

async fn requeued_while_the_clock_was_set_back_it_runs_once(bench: Bench) {
    let id = bench.add(1_000, job()).await;
    for at in [1_000, 0] {
        bench.at(at).cancel(&id).await.unwrap();
        bench.at(at).requeue(&id).await.unwrap();
    }
    assert_eq!(claim_all(&bench, 1_000).await, [id]);
}

async fn an_old_entry_does_not_start_a_running_task_again(bench: Bench) {
    let id = bench.add(0, mortal()).await;
    let other = bench.add(0, job()).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(0).requeue(&id).await.unwrap();
    let worker = bench.worker(0, "w").await;
    // The tombstone is skipped, and the new entry is after the other task.
    assert_eq!(bench.claim(0, &worker, 1, 1).await.ids(), [other]);
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(0).requeue(&id).await.unwrap();
    let lease = bench.take(0, &worker, 2).await;
    assert_eq!(lease.id, id);
    assert!(bench.release(0, &[given(&lease, Give::Head)]).await.is_empty());
    assert_eq!(bench.claim(0, &worker, 3, 8).await.ids(), slice::from_ref(&id));
    assert!(bench.claim(0, &worker, 4, 8).await.grants.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Working);
}

async fn the_tombstone_of_a_purged_task_is_removed_and_counted(bench: Bench) {
    let (gone, kept) = (bench.add(0, job()).await, bench.add(0, job()).await);
    bench.at(0).cancel(&gone).await.unwrap();
    bench.at(9).purge(&bench.queue, keep(0, ms(1)), ms(1)).await.unwrap();
    assert_eq!(ready(&bench).await, 1);
    assert_eq!(claim_all(&bench, 9).await, [kept]);
    assert_eq!(ready(&bench).await, 0);
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("0"));
}

on_both![
    first_come_first_served,
    a_priority_is_worth_a_minute_per_step_and_ages,
    a_task_with_a_given_id_is_ready_since_its_submit,
    a_released_task_whose_id_has_no_time_is_the_next,
    equal_priorities_keep_their_order,
    single_claims_return_ranked_and_plain_tasks_in_the_same_order,
    a_tombstone_is_not_a_ready_task_and_is_removed,
    a_claim_passes_128_tombstones,
    no_task_overtakes_those_after_tombstones,
    a_page_of_ready_tasks_has_no_purged_task_and_none_twice,
    tasks_that_were_cancelled_and_requeued_are_listed_once,
    a_task_cancelled_while_ranked_leaves_no_tombstone,
    cancelled_and_requeued_it_runs_once_with_two_workers,
    requeued_twice_within_a_millisecond_it_runs_once,
    requeued_while_the_clock_was_set_back_it_runs_once,
    an_old_entry_does_not_start_a_running_task_again,
    the_tombstone_of_a_purged_task_is_removed_and_counted,
];
