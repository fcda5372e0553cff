//! `list`: the tasks in a state, one page at a time. The model also compares the rows of ready,
//! held and succeeded tasks.

use std::time::Duration;

use optimus_core::{
    Due, TaskId, TaskState,
    broker::{FailureOutcome, Listed},
};

use crate::{
    acts::{Grants, done, failed, ids_of, keep, ms},
    after::after,
    bench::{Bench, START},
    jobs::{job, job_of, jobs, ready_at},
};

const LONG: Duration = Duration::from_secs(10_000_000);

async fn list(bench: &Bench, state: TaskState, limit: usize, cursor: &str) -> Listed {
    bench.now().list(&bench.queue, state, limit, cursor).await.expect("a list is not refused")
}

fn ids(listed: &Listed) -> Vec<TaskId> {
    listed.rows.iter().map(|row| row.id.clone()).collect()
}

/// Reads all pages, with a callback between each two.
async fn walk(
    bench: &Bench,
    state: TaskState,
    limit: usize,
    mut between: impl AsyncFnMut(usize),
) -> Vec<TaskId> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    for page in 0.. {
        let listed = list(bench, state, limit, &cursor).await;
        assert!(listed.rows.len() <= limit);
        all.extend(ids(&listed));
        cursor = listed.next;
        if cursor.is_empty() {
            break;
        }
        between(page).await;
    }
    all
}

/// Submits this many tasks and marks them Dead at 0, 1, 2… ms. Returns their ids, the latest first.
async fn mark_dead(bench: &Bench, count: usize) -> Vec<TaskId> {
    bench.submit(0, &jobs(count)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, count).await.leases(&worker);
    for (at, lease) in (0..).zip(&leases) {
        assert!(bench.fail(at, &[failed(lease, FailureOutcome::Dead)]).await.is_empty());
    }
    leases.into_iter().rev().map(|lease| lease.id).collect()
}

async fn a_page_continues_after_the_last_one_while_tasks_come_and_go(bench: Bench) {
    let dead = mark_dead(&bench, 20).await;
    let seen = walk(&bench, TaskState::Dead, 5, async |page| match page {
        // The task of the cursor leaves, one before it leaves, and a new one arrives.
        0 => drop(bench.now().requeue(&dead[4]).await.unwrap()),
        1 => drop(bench.now().requeue(&dead[0]).await.unwrap()),
        _ => {
            let worker = bench.worker(900, "late").await;
            let lease = bench.take(900, &worker, u64::try_from(page).unwrap()).await;
            assert!(bench.fail(900, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
        }
    })
    .await;
    assert_eq!(seen, dead);
}

async fn many_tasks_of_one_instant_are_all_listed(bench: Bench) {
    let tasks = jobs(30);
    bench.submit(0, &tasks).await;
    for id in ids_of(&tasks) {
        bench.at(5).cancel(&id).await.unwrap();
    }
    let mut seen = walk(&bench, TaskState::Cancelled, 4, async |_| {}).await;
    assert_eq!(seen.len(), 30);
    seen.sort();
    let mut all = ids_of(&tasks);
    all.sort();
    assert_eq!(seen, all);
}

/// The position of that task is then a different one, so it does not show which tasks are still
/// missing.
async fn the_task_of_the_cursor_may_come_back_at_another_time(bench: Bench) {
    let mut due = Vec::new();
    for at in 1..=10 {
        due.push(bench.add(0, job().due(Due::In(ms(at * 1_000)))).await);
    }
    let seen = walk(&bench, TaskState::Delayed, 3, async |page| {
        if page == 0 {
            let (key, id) = (bench.key("delayed"), due[2].stored());
            let later = crate::bench::START + 9_500;
            let () = bench.raw(redis::cmd("ZADD").arg(key).arg(later).arg(id)).await;
        }
    })
    .await;
    assert!(due.iter().all(|id| seen.contains(id)), "{seen:?}");
}

async fn no_task_is_omitted_while_the_ready_list_changes(bench: Bench) {
    let ranked = bench.add(0, job().priority(1)).await;
    let tasks = jobs(30);
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let seen = walk(&bench, TaskState::Ready, 4, async |page| {
        if page < 3 {
            bench.claim(0, &worker, u64::try_from(page).unwrap() + 1, 3).await;
            bench.submit(0, &jobs(2)).await;
        }
    })
    .await;
    assert_eq!(seen[0], ranked);
    let left = walk(&bench, TaskState::Ready, 128, async |_| {}).await;
    assert!(left.iter().all(|id| seen.contains(id)));
    assert_eq!(left.len(), 1 + 30 - 9 + 6);
}

async fn a_tombstone_is_not_a_row_of_ready_tasks(bench: Bench) {
    let tasks = jobs(5);
    bench.submit(0, &tasks).await;
    let all = ids_of(&tasks);
    bench.at(0).cancel(&all[1]).await.unwrap();
    bench.at(0).cancel(&all[2]).await.unwrap();
    bench.at(0).requeue(&all[2]).await.unwrap();
    let worker = bench.worker(0, "w").await;
    assert_eq!(bench.claim(0, &worker, 1, 1).await.ids(), [all[0].clone()]);
    let mut seen = walk(&bench, TaskState::Ready, 2, async |_| {}).await;
    seen.sort();
    seen.dedup();
    assert_eq!(seen, [all[2].clone(), all[3].clone(), all[4].clone()]);
}

async fn a_page_of_ready_tasks_passes_many_tombstones(bench: Bench) {
    let cancelled = jobs(1_000);
    bench.submit(0, &cancelled).await;
    for task in &cancelled {
        bench.at(1).cancel(task.id()).await.unwrap();
    }
    let tasks = jobs(5);
    bench.submit(2, &tasks).await;
    for limit in [1, 3, 128] {
        let page = list(&bench, TaskState::Ready, limit, "").await;
        let expected: Vec<_> = tasks.iter().take(limit).map(|task| task.id().clone()).collect();
        assert_eq!(ids(&page), expected);
    }
}

async fn a_page_is_bounded_in_rows_and_bytes(bench: Bench) {
    let count = 200;
    bench.submit(0, &jobs(count)).await;
    assert_eq!(list(&bench, TaskState::Ready, 9_999, "").await.rows.len(), 128);
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 100).await.leases(&worker);
    let long = format!(r#"{{"reason":"failed","message":"{}"}}"#, "x".repeat(8_000));
    let mut failures: Vec<_> = leases.iter().map(|l| failed(l, FailureOutcome::Dead)).collect();
    for failure in &mut failures {
        failure.error.clone_from(&long);
    }
    assert!(bench.fail(0, &failures).await.is_empty());
    let page = list(&bench, TaskState::Dead, 128, "").await;
    assert!((20..40).contains(&page.rows.len()), "{}", page.rows.len());
    assert_eq!(walk(&bench, TaskState::Dead, 128, async |_| {}).await.len(), 100);
}

async fn a_row_has_the_header_and_not_the_arguments(bench: Bench) {
    let large = job_of(format!("\"{}\"", "x".repeat(10_000))).biz_id("b");
    let task = ready_at(0, large);
    bench.submit(0, std::slice::from_ref(&task)).await;
    let row = list(&bench, TaskState::Ready, 1, "").await.rows.remove(0);
    let header = String::from_utf8(row.header).unwrap();
    assert!(header.contains("\"b\"") && header.ends_with('}') && header.len() < 200, "{header}");
    assert_eq!((row.tries, row.worker, row.at_ms), ((0, 0, 0), None, None));
}

async fn a_ready_task_that_was_delayed_has_the_time_since_which_it_is_ready(bench: Bench) {
    for _ in 0..2 {
        bench.add(0, job().due(Due::In(ms(5)))).await;
    }
    bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    assert_eq!(bench.claim(7, &worker, 1, 1).await.leases(&worker).len(), 1);
    let rows = list(&bench, TaskState::Ready, 9, "").await.rows;
    let since: Vec<_> = rows.iter().map(|row| row.at_ms).collect();
    assert_eq!(since, [Some(START + 7), Some(START + 7)], "{rows:?}");
}

async fn successes_are_listed_from_their_summaries_the_latest_first(bench: Bench) {
    bench.submit(0, &jobs(10)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 10).await.leases(&worker);
    for lease in &leases {
        assert!(bench.complete(0, &[done(lease)]).await.is_empty());
    }
    let seen = walk(&bench, TaskState::Success, 3, async |_| {}).await;
    assert_eq!(seen, leases.iter().rev().map(|lease| lease.id.clone()).collect::<Vec<_>>());
    let row = list(&bench, TaskState::Success, 1, "").await.rows.remove(0);
    assert!(row.summary.starts_with(&leases[9].id.stored()) && row.at_ms.is_some());
}

async fn tasks_that_wait_for_others_are_listed_once_each_in_pages_of_any_size(bench: Bench) {
    let mut known = Vec::new();
    for count in [60, 80, 60] {
        known.extend(waiting(&bench, count).await);
        known.sort();
        for limit in (1..=20).chain([49, 50, 59, 60, 100, 127, 128]) {
            let mut seen = walk(&bench, TaskState::Blocked, limit, async |_| {}).await;
            seen.sort();
            assert_eq!(seen, known, "pages of {limit}");
        }
    }
}

/// Adds tasks that wait for another one.
async fn waiting(bench: &Bench, count: usize) -> Vec<TaskId> {
    let first = bench.add(0, job().due(Due::In(LONG))).await;
    let mut waiting = Vec::new();
    while waiting.len() < count {
        waiting.push(bench.add_after(0, job(), after(&first)).await);
    }
    waiting
}

async fn pages_of_different_sizes_hide_no_task_that_waits_for_others(bench: Bench) {
    let mut waiting = waiting(&bench, 700).await;
    waiting.sort();
    for sizes in [[3, 128, 128], [128, 7, 60], [1, 2, 100]] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        for size in sizes.into_iter().cycle() {
            let listed = list(&bench, TaskState::Blocked, size, &cursor).await;
            assert!(listed.rows.len() <= size);
            seen.extend(ids(&listed));
            cursor = listed.next;
            if cursor.is_empty() {
                break;
            }
        }
        seen.sort();
        assert_eq!(seen, waiting, "pages of {sizes:?}");
    }
}

async fn tasks_that_end_after_their_page_hide_none_that_waits_for_others(bench: Bench) {
    let waiting = waiting(&bench, 700).await;
    for size in [3, 10, 50] {
        let (mut seen, mut cursor, mut left) = (Vec::new(), String::new(), waiting.clone());
        loop {
            let listed = list(&bench, TaskState::Blocked, size, &cursor).await;
            let page = ids(&listed);
            // Every second task that was shown leaves.
            for id in page.iter().step_by(2) {
                bench.now().cancel(id).await.unwrap();
                left.retain(|one| one != id);
            }
            seen.extend(page);
            cursor = listed.next;
            if cursor.is_empty() {
                break;
            }
        }
        let hidden: Vec<_> = left.iter().filter(|id| !seen.contains(id)).collect();
        assert!(hidden.is_empty(), "pages of {size}: {} are hidden", hidden.len());
        for id in &waiting {
            if !left.contains(id) {
                bench.now().requeue(id).await.unwrap();
            }
        }
    }
}

async fn an_invalid_cursor_starts_at_the_first_page(bench: Bench) {
    let dead = mark_dead(&bench, 3).await;
    bench.submit(0, &jobs(2)).await;
    for cursor in ["x", "x y", "p", "px y", "-5 y", "99999999999 y"] {
        for state in TaskState::ALL {
            list(&bench, state, 10, cursor).await;
        }
    }
    assert_eq!(ids(&list(&bench, TaskState::Dead, 10, "x y").await), dead);
    assert!(list(&bench, TaskState::Forgotten, 10, "").await.rows.is_empty());
    bench.at(0).purge(&bench.queue, keep(0, LONG), LONG).await.unwrap();
    assert!(list(&bench, TaskState::Dead, 10, "").await.rows.is_empty());
}

on_both![
    tasks_that_wait_for_others_are_listed_once_each_in_pages_of_any_size,
    pages_of_different_sizes_hide_no_task_that_waits_for_others,
    tasks_that_end_after_their_page_hide_none_that_waits_for_others,
    a_page_continues_after_the_last_one_while_tasks_come_and_go,
    many_tasks_of_one_instant_are_all_listed,
    the_task_of_the_cursor_may_come_back_at_another_time,
    no_task_is_omitted_while_the_ready_list_changes,
    a_tombstone_is_not_a_row_of_ready_tasks,
    a_page_of_ready_tasks_passes_many_tombstones,
    a_page_is_bounded_in_rows_and_bytes,
    a_row_has_the_header_and_not_the_arguments,
    a_ready_task_that_was_delayed_has_the_time_since_which_it_is_ready,
    successes_are_listed_from_their_summaries_the_latest_first,
    an_invalid_cursor_starts_at_the_first_page,
];
