//! `retain` and `history`: what a queue keeps of the tasks that succeeded or died.

use std::{collections::BTreeSet, time::Duration};

use optimus_core::{
    Lease, OnLost, TaskId, TaskState, WorkerId,
    broker::{Completion, FailureOutcome, HistoryPart},
};

use crate::{
    acts::{Grants, done, failed, keep, ms},
    bench::{Bench, START},
    jobs::{job, jobs},
    world_history::TODAY,
};

const DAY: u64 = 86_400_000;
const LONG: Duration = Duration::from_secs(10_000_000);

async fn set(bench: &Bench, days: u32, bytes: u64, tasks: &str) {
    bench.now().retain(&bench.queue, Some((days, bytes, tasks))).await.unwrap();
}

/// Claims this many new tasks.
async fn hold(bench: &Bench, at: u64, worker: &WorkerId, count: usize) -> Vec<Lease> {
    bench.submit(at, &jobs(count)).await;
    let number = bench.next_number() + 1_000;
    bench.claim(at, worker, number, count).await.leases(worker)
}

/// Lets this many tasks succeed, all at this ms, in calls of 100.
async fn succeed(bench: &Bench, at: u64, worker: &WorkerId, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let leases = hold(bench, at, worker, 100.min(count - ids.len())).await;
        let ended =
            |lease: &Lease| Completion { ended_ms: START + at, has_sides: false, ..done(lease) };
        let reports: Vec<Completion> = leases.iter().map(ended).collect();
        assert!(bench.complete(at, &reports).await.is_empty());
        ids.extend(leases.into_iter().map(|lease| lease.id));
    }
    ids
}

async fn read(bench: &Bench, state: TaskState, day: u64, first: u64) -> HistoryPart {
    bench.now().history(&bench.queue, (state, day), first, 256).await.unwrap()
}

/// Returns the ids of all lines of some entries.
fn ids(entries: &[String]) -> Vec<&str> {
    let lines = entries.iter().flat_map(|entry| entry.lines());
    lines.filter_map(|line| line.split(' ').next()).collect()
}

async fn a_success_is_among_the_last_or_in_its_day(bench: Bench) {
    set(&bench, 9, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    let mut ended = succeed(&bench, 0, &worker, 700).await;
    ended.extend(succeed(&bench, DAY, &worker, 1_900).await);
    let (first, second) = (
        read(&bench, TaskState::Success, TODAY, 0).await,
        read(&bench, TaskState::Success, TODAY + 1, 0).await,
    );
    assert_eq!(first.recent, second.recent);
    assert!((1_000..=1_128).contains(&first.recent.len()), "{}", first.recent.len());
    let mut found = ids(&first.entries);
    found.extend(ids(&second.entries));
    found.extend(ids(&first.recent));
    let expected: Vec<String> = ended.iter().map(TaskId::stored).collect();
    assert_eq!(found, expected, "each once, in their order");
    let totals = bench.now().totals(&bench.queue).await.unwrap();
    assert_eq!(totals.successes, 2_600);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_call_of_one_task_keeps_what_leaves(bench: Bench) {
    set(&bench, 9, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    succeed(&bench, 0, &worker, 1_100).await;
    for _ in 0..30 {
        succeed(&bench, 0, &worker, 1).await;
    }
    let found = read(&bench, TaskState::Success, TODAY, 0).await;
    assert_eq!((ids(&found.entries).len(), found.recent.len()), (129, 1_001));
}

async fn a_history_that_is_stopped_keeps_the_days_that_were_set_last(bench: Bench) {
    assert!(!bench.now().retain_no_more(&bench.queue).await.unwrap());
    assert_eq!(bench.names().await, [""; 0], "there was none to stop");
    set(&bench, 9, 1 << 20, ",send,").await;
    set(&bench, 30, 1 << 21, "*").await;
    for _ in 0..2 {
        assert!(bench.now().retain_no_more(&bench.queue).await.unwrap());
        assert_eq!(bench.field("meta", "history").await.unwrap(), "30 2097152 -");
    }
}

/// Declares it, as a worker does. Returns what is set after that, and whether it is new.
async fn declare(bench: &Bench, days: u32, tasks: &str) -> (String, bool) {
    let declared = bench.now().retain_at_least(&bench.queue, (days, 1 << 20, tasks)).await;
    let (now, changed) = (bench.field("meta", "history").await.unwrap(), declared.unwrap());
    assert!(changed.as_ref().is_none_or(|changed| *changed == now));
    (now, changed.is_some())
}

async fn what_code_declares_adds_to_what_is_set_and_never_reduces_it(bench: Bench) {
    let is = |days: u32, bytes: u32, tasks: &str| format!("{days} {bytes} {tasks}");
    let budget = 1 << 20;
    assert_eq!(declare(&bench, 30, ",send,").await, (is(30, budget, ",send,"), true));
    assert_eq!(declare(&bench, 30, ",send,").await, (is(30, budget, ",send,"), false));
    assert_eq!(declare(&bench, 9, ",sen,").await, (is(30, budget, ",send,sen,"), true));
    assert_eq!(
        declare(&bench, 180, ",sen,mail,").await,
        (is(180, budget, ",send,sen,mail,"), true)
    );
    set(&bench, 200, 1 << 21, ",send,").await;
    assert_eq!(declare(&bench, 180, ",mail,").await, (is(200, 1 << 21, ",send,mail,"), true));
    set(&bench, 2, 1 << 20, "*").await;
    assert_eq!(declare(&bench, 180, ",mail,").await, (is(180, budget, "*"), true));
    bench.now().retain_no_more(&bench.queue).await.unwrap();
    assert_eq!(declare(&bench, 366, ",mail,").await, (is(180, budget, "-"), false));
    bench.now().retain(&bench.queue, None).await.unwrap();
    let names = (0..64).map(|n| format!("t{n}")).collect::<Vec<_>>().join(",") + ",";
    let (many, _) = declare(&bench, 1, &format!(",{names}")).await;
    assert_eq!(many, is(1, budget, &format!(",{names}")));
    assert_eq!(declare(&bench, 1, ",t7,t63,").await, (many, false));
    assert_eq!(declare(&bench, 1, ",t64,").await, (is(1, budget, "*"), true));
    bench.now().retain(&bench.queue, None).await.unwrap();
    assert_eq!(declare(&bench, 1, &format!(",{names}t64,")).await, (is(1, budget, "*"), true));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn only_the_named_tasks_are_kept(bench: Bench) {
    set(&bench, 9, 1 << 20, ",send,mail,").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    let leases = hold(&bench, 0, &worker, 100).await;
    let names = ["job", "mail", "send", "sen", "il,send"];
    let reports: Vec<Completion> = leases
        .iter()
        .zip(names.into_iter().cycle())
        .map(|(lease, task)| Completion { task, ended_ms: START, ..done(lease) })
        .collect();
    assert!(bench.complete(0, &reports).await.is_empty());
    succeed(&bench, 0, &worker, 1_100).await;
    let found = read(&bench, TaskState::Success, TODAY, 0).await;
    assert_eq!(ids(&found.entries).len(), 40, "two of five");
    // The tasks that die are jobs.
    let lease = hold(&bench, 0, &worker, 1).await.remove(0);
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert!(read(&bench, TaskState::Dead, TODAY, 0).await.entries.is_empty());
}

async fn a_death_is_kept_with_its_error_and_how_long_it_took(bench: Bench) {
    set(&bench, 9, 1 << 20, ",job,").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    let leases = hold(&bench, 0, &worker, 5).await;
    let short = r#"{"reason":"failed","message":"away","attempt":2,"worker":"w","at_ms":0}"#;
    let tail = r#","attempt":7,"worker":"w","at_ms":0,"fp":"AAAAAAAAAAA"}"#;
    let trap = r#"\",\"attempt\":1,\"worker\":\"x\""#.repeat(60);
    let long = format!(r#"{{"reason":"failed","message":"{trap}"{tail}"#);
    let outcomes = [
        (short.to_owned(), FailureOutcome::Dead),
        (long, FailureOutcome::Expired),
        (String::new(), FailureOutcome::Dead),
        (short.to_owned(), FailureOutcome::Retry(LONG)),
        (short.to_owned(), FailureOutcome::Cancelled),
    ];
    let reports = leases.iter().zip(outcomes);
    let reports = reports.map(|(lease, (error, outcome))| optimus_core::broker::Failure {
        error,
        ..failed(lease, outcome)
    });
    assert!(bench.fail(41, &reports.collect::<Vec<_>>()).await.is_empty());
    let found = read(&bench, TaskState::Dead, TODAY, 0).await.entries;
    let line = |at: usize, error: &str| {
        format!("{} {} job 41 {error}", leases[at].id.stored(), START + 41)
    };
    let cut = format!(r#"{{"reason":"failed"{tail}"#);
    let expected = [line(0, short), line(1, &cut), line(2, "")].join("\n");
    assert_eq!(found, [expected]);
    // A requeued task that ends again has another line.
    bench.at(50).requeue(&leases[0].id).await.unwrap();
    let again = bench.take(60, &worker, 9_000).await;
    assert!(bench.fail(61, &[failed(&again, FailureOutcome::Dead)]).await.is_empty());
    assert_eq!(ids(&read(&bench, TaskState::Dead, TODAY, 1).await.entries).len(), 1);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_task_that_dies_with_its_worker_is_kept(bench: Bench) {
    set(&bench, 9, 1 << 20, "*").await;
    let id = bench.add(0, job().on_lost(OnLost::Dead)).await;
    let other = bench.add(0, job()).await;
    let lost = bench.worker_for(0, "lost", ms(1_000)).await;
    assert_eq!(bench.claim(0, &lost, 1, 2).await.grants.len(), 2);
    let worker = bench.worker_for(0, "w", LONG).await;
    for at in [500, 1_000, 1_500] {
        bench.at(at).renew(&bench.queue, &worker, LONG).await.unwrap();
    }
    bench.at(2_000).reap(&bench.queue, &worker, LONG, 9).await.unwrap();
    let found = read(&bench, TaskState::Dead, TODAY, 0).await.entries;
    let error = r#"{"reason":"lost","attempt":1,"worker":"lost"}"#;
    assert_eq!(found, [format!("{} {} job 2000 {error}", id.stored(), START + 2_000)]);
    assert_eq!(bench.state(&other).await, TaskState::Ready);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn the_oldest_leave_when_there_are_too_many_bytes(bench: Bench) {
    let worker = bench.worker_for(0, "w", LONG).await;
    set(&bench, 9, 1 << 20, "*").await;
    // Many small entries leave for a large one.
    for lease in hold(&bench, 0, &worker, 120).await {
        assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    }
    succeed(&bench, 0, &worker, 1_500).await;
    let whole = read(&bench, TaskState::Success, TODAY, 0).await;
    let budget = 40_000;
    set(&bench, 9, budget, "*").await;
    for day in 1..4 {
        succeed(&bench, day * DAY, &worker, 700).await;
        let bytes = bench.field("history_bytes", "all").await.unwrap();
        assert!(bytes.parse::<u64>().unwrap() <= budget, "{bytes}");
        assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    }
    let first = read(&bench, TaskState::Success, TODAY, 0).await;
    assert!(first.entries.is_empty(), "the oldest day is gone");
    assert!(!whole.entries.is_empty());
    // The numbers of entries do not change when others leave.
    let last = read(&bench, TaskState::Success, TODAY + 1, 0).await;
    assert!(last.first > 0 && !last.entries.is_empty(), "{} left", last.first);
    let next = read(&bench, TaskState::Success, TODAY + 1, last.first + 1).await;
    assert_eq!(next.entries, last.entries[1..]);
}

async fn days_that_are_too_old_leave(bench: Bench) {
    set(&bench, 2, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    succeed(&bench, 0, &worker, 1_300).await;
    for at in [1, DAY] {
        let lease = hold(&bench, at, &worker, 1).await.remove(0);
        assert!(bench.fail(at, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    }
    let names = async || {
        let names: BTreeSet<String> = bench.names().await.into_iter().collect();
        let kept = names.into_iter().filter(|name| name.contains(":1"));
        kept.filter(|name| ["success:", "dead:"].iter().any(|k| name.starts_with(k))).count()
    };
    assert_eq!(names().await, 3);
    let purge = async |at: u64| bench.at(at).purge(&bench.queue, keep(9, LONG), LONG).await;
    purge(DAY + 1).await.unwrap();
    assert_eq!(names().await, 3);
    purge(2 * DAY).await.unwrap();
    assert_eq!(names().await, 1);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    // A line that is too old is not stored.
    succeed(&bench, 5 * DAY, &worker, 900).await;
    assert_eq!(read(&bench, TaskState::Success, TODAY, 0).await.entries, [""; 0]);
    purge(9 * DAY).await.unwrap();
    assert_eq!(names().await, 0);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_worker_whose_clock_is_ahead_ends_tasks_today(bench: Bench) {
    set(&bench, 2, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    let leases = hold(&bench, 0, &worker, 100).await;
    let ahead: Vec<Completion> = leases
        .iter()
        .map(|lease| Completion { ended_ms: START + 900 * DAY, ..done(lease) })
        .collect();
    assert!(bench.complete(0, &ahead).await.is_empty());
    succeed(&bench, 0, &worker, 1_100).await;
    assert_eq!(ids(&read(&bench, TaskState::Success, TODAY, 0).await.entries).len(), 200);
    assert_eq!(bench.list(&format!("success:{}", TODAY + 900)).await, [""; 0]);
}

async fn a_history_that_was_stopped_stays_for_its_time(bench: Bench) {
    set(&bench, 2, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    succeed(&bench, 0, &worker, 1_300).await;
    let before = read(&bench, TaskState::Success, TODAY, 0).await.entries;
    set(&bench, 2, 1 << 20, "-").await;
    succeed(&bench, 0, &worker, 500).await;
    assert_eq!(read(&bench, TaskState::Success, TODAY, 0).await.entries, before);
    bench.at(9 * DAY - 9).purge(&bench.queue, keep(0, ms(1)), ms(1)).await.unwrap();
    assert_eq!(read(&bench, TaskState::Success, TODAY, 0).await.entries, [""; 0]);
}

async fn a_stop_prevails_over_code_until_an_operator_ends_it(bench: Bench) {
    set(&bench, 2, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    succeed(&bench, 0, &worker, 1_300).await;
    bench.now().retain_no_more(&bench.queue).await.unwrap();
    let purge = async |at| bench.at(at).purge(&bench.queue, keep(0, ms(1)), ms(1)).await.unwrap();
    purge(9 * DAY).await;
    assert_eq!(bench.list(&format!("success:{TODAY}")).await, [""; 0], "nothing is left");
    let stopped = "2 1048576 -".to_owned();
    assert_eq!(declare(&bench, 180, ",job,").await, (stopped.clone(), false));
    // The queue is unused for longer than a queue is kept.
    bench.at(9 * DAY).leave(&bench.queue, &worker).await.unwrap();
    purge(19 * DAY).await;
    let retire = async || bench.at(20 * DAY).retire(&bench.queue, ms(1)).await.unwrap();
    assert!(!retire().await, "an operator has set something of the queue");
    assert_eq!(declare(&bench, 180, ",job,").await, (stopped, false));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert!(bench.now().retain(&bench.queue, None).await.unwrap());
    assert!(retire().await, "{:?}", bench.names().await);
    assert_eq!(declare(&bench, 180, ",job,").await, ("180 1048576 ,job,".to_owned(), true));
}

async fn a_queue_with_a_history_is_not_removed_unless_that_is(bench: Bench) {
    set(&bench, 2, 1 << 20, "*").await;
    let worker = bench.worker_for(0, "w", LONG).await;
    succeed(&bench, 0, &worker, 1_300).await;
    bench.at(0).leave(&bench.queue, &worker).await.unwrap();
    bench.at(1).purge(&bench.queue, keep(0, ms(1)), ms(0)).await.unwrap();
    let retire = async || bench.at(DAY).retire(&bench.queue, ms(1)).await.unwrap();
    assert!(!retire().await);
    assert!(bench.now().retain(&bench.queue, None).await.unwrap(), "one was set");
    assert!(!bench.now().retain(&bench.queue, None).await.unwrap());
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert!(retire().await, "{:?}", bench.names().await);
}

on_both![
    a_success_is_among_the_last_or_in_its_day,
    a_call_of_one_task_keeps_what_leaves,
    a_history_that_is_stopped_keeps_the_days_that_were_set_last,
    what_code_declares_adds_to_what_is_set_and_never_reduces_it,
    only_the_named_tasks_are_kept,
    a_death_is_kept_with_its_error_and_how_long_it_took,
    a_task_that_dies_with_its_worker_is_kept,
    the_oldest_leave_when_there_are_too_many_bytes,
    days_that_are_too_old_leave,
    a_worker_whose_clock_is_ahead_ends_tasks_today,
    a_history_that_was_stopped_stays_for_its_time,
    a_stop_prevails_over_code_until_an_operator_ends_it,
    a_queue_with_a_history_is_not_removed_unless_that_is,
];
