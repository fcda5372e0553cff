//! `submit`: ∅ → Ready | Delayed.

use chrono::DateTime;
use optimus_core::{
    Due, Submission, Submit, TaskId, TaskRecord, TaskState,
    broker::{Batch, FailureOutcome, Receipt},
};

use crate::{
    acts::{Grants, failed, ids_of, ms},
    bench::{Bench, START},
    jobs::{job, job_of, jobs, ready},
};

fn at(ms: u64) -> Due {
    let instant = i64::try_from(START + ms).unwrap();
    Due::At(DateTime::from_timestamp_millis(instant).unwrap())
}

async fn a_plain_task_is_in_the_ready_list(bench: Bench) {
    let task = ready(job_of(r#"{"a":1}"#));
    let id = task.id().clone();
    assert_eq!(bench.submit(5, &[task]).await, [Receipt::Created]);

    assert_eq!(bench.state(&id).await, TaskState::Ready);
    assert_eq!(bench.names().await, ["ledger:c1", "ready", "tasks", "wake"]);
    let stored = bench.field("tasks", &id.stored()).await.unwrap();
    let record = TaskRecord::decode(stored.clone().into_bytes()).unwrap();
    assert_eq!(record.task, "job");
    assert_eq!(record.accepted_ms, None);
    assert_eq!(record.payload, br#"{"a":1}"#);
    assert_eq!(bench.list("ready").await, [id.stored()]);
}

async fn a_task_that_can_expire_has_the_time_when_it_was_accepted(bench: Bench) {
    let id = bench.add(5, job().expires_in(ms(90))).await;
    let stored = bench.field("tasks", &id.stored()).await.unwrap();
    let record = TaskRecord::decode(stored.into_bytes()).unwrap();
    assert_eq!((record.accepted_ms, record.expires_in), (Some(START + 5), Some(ms(90))));
}

async fn tasks_of_a_client_with_a_wrong_clock_are_ordered_by_the_stores_clock(bench: Bench) {
    let tasks = jobs(2);
    let ahead = Batch {
        queue: &bench.queue,
        client: "c1",
        number: 1,
        since: 0,
        keep: false,
        tasks: &tasks,
    };
    bench.now().here(START).submit(&ahead).await.unwrap();
    for (entry, task) in bench.list("ready").await.iter().zip(&tasks) {
        let (stamp, id) = entry.split_once(':').expect("a stamp");
        assert_eq!(id, task.id().stored());
        let since = u64::from_str_radix(stamp, 36).unwrap();
        let here = chrono::Utc::now().timestamp_millis().unsigned_abs();
        assert!(since.abs_diff(here) < 60_000, "{since} is far from {here}");
    }
}

async fn a_task_with_a_delay_waits_for_its_time(bench: Bench) {
    let later = bench.add(0, job().due(Due::In(ms(90)))).await;
    let earlier = bench.add(0, job().due(at(40))).await;
    for (id, due) in [(&later, 90), (&earlier, 40)] {
        assert_eq!(bench.state(id).await, TaskState::Delayed);
        assert_eq!(bench.score("delayed", &id.stored()).await, Some(START + due));
    }
    assert!(bench.list("ready").await.is_empty());
}

async fn a_time_in_the_past_means_at_once(bench: Bench) {
    for due in [at(0), at(10), Due::In(ms(0)), Due::At(DateTime::UNIX_EPOCH)] {
        let id = bench.add(10, job().due(due)).await;
        assert_eq!(bench.state(&id).await, TaskState::Ready, "{due:?}");
    }
    assert!(!bench.names().await.contains(&"delayed".to_owned()));
}

async fn a_priority_ranks_a_task_now_or_when_it_is_due(bench: Bench) {
    let now = bench.add(0, job().priority(2)).await;
    let later = bench.add(0, job().priority(-3).due(Due::In(ms(10)))).await;

    assert_eq!(bench.score("priority", &now.stored()).await, Some(START - 120_000));
    assert_eq!(bench.score("priority", &later.stored()).await, None);
    assert_eq!(bench.field("priorities", &now.stored()).await.as_deref(), Some("2"));
    assert_eq!(bench.field("priorities", &later.stored()).await.as_deref(), Some("-3"));
    assert_eq!(bench.state(&now).await, TaskState::Ready);
    assert_eq!(bench.state(&later).await, TaskState::Delayed);
    assert!(bench.list("ready").await.is_empty());
}

async fn the_wakeup_list_holds_one_token_and_gets_it_only_for_sooner_tasks(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    bench.submit(0, &jobs(1)).await;
    assert!(bench.answer_wakeup().await);
    assert!(!bench.answer_wakeup().await, "at most one token");

    bench.submit(0, &jobs(30)).await;
    bench.answer_wakeup().await;
    bench.submit(0, &jobs(1)).await;
    assert!(!bench.answer_wakeup().await, "the list was long");
    bench.add(0, job().priority(1)).await;
    assert!(bench.answer_wakeup().await, "a ranked task may overtake others");

    bench.add(0, job().due(Due::In(ms(50)))).await;
    assert!(bench.answer_wakeup().await, "no worker waited for an earlier time");
    bench.add(0, job().due(Due::In(ms(50)))).await;
    assert!(!bench.answer_wakeup().await, "the task is due no sooner than the other");
    bench.add(0, job().due(Due::In(ms(49)))).await;
    assert!(bench.answer_wakeup().await, "the task is due sooner than the other");
}

async fn a_lost_wakeup_is_repeated_often_for_a_short_list_and_rarely_for_a_long_one(bench: Bench) {
    let mut lengths = Vec::new();
    for length in 1..=300 {
        bench.submit(0, &jobs(1)).await;
        if bench.answer_wakeup().await {
            lengths.push(length);
        }
    }
    let expected: Vec<_> = (1..=17).chain([64, 128, 192, 256]).collect();
    assert_eq!(lengths, expected, "each wakeup was lost, because no worker claims");
    bench.submit(0, &jobs(63)).await;
    assert!(bench.answer_wakeup().await, "from 300 to 363 passes 320");
}

async fn a_thousand_tasks_of_one_call_keep_their_order(bench: Bench) {
    let tasks = jobs(1_000);
    let receipts = bench.submit(0, &tasks).await;
    assert_eq!(receipts, vec![Receipt::Created; 1_000]);

    let worker = bench.worker(0, "w").await;
    let mut claimed = Vec::new();
    for seq in 1..=8 {
        claimed.extend(bench.claim(0, &worker, seq, 128).await.ids());
    }
    assert_eq!(claimed, ids_of(&tasks));
}

async fn a_thousand_tasks_with_every_option_fit_one_call(bench: Bench) {
    let tasks: Vec<_> = (0..1_000)
        .map(|i| {
            let call = job().biz_id(format!("b{i}")).priority(1);
            ready(if i % 2 == 0 { call } else { call.due(Due::In(ms(10))) })
        })
        .collect();
    assert_eq!(bench.submit(0, &tasks).await, vec![Receipt::Created; 1_000]);

    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.ready, counts.delayed), (500, 500));
    assert_eq!(
        bench.submit(1, &tasks).await,
        vec![Receipt::Created; 1_000],
        "the call's own marks do not count"
    );
}

async fn a_stored_task_is_returned_and_nothing_is_added(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = [(); 4].map(|()| TaskId::new(bench.queue.clone()));
    let [dead, working, ready_one, new] = &ids;
    for (seq, id) in [(1, dead), (2, working)] {
        bench.submit(0, &[submission(id)]).await;
        let lease = bench.take(0, &worker, seq).await;
        if id == dead {
            bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await;
        }
    }
    bench.submit(0, &[submission(ready_one)]).await;
    let before = bench.dump().await;

    let again: Vec<Submission> = [dead, working, ready_one].map(submission).into();
    let stored = |id: &TaskId| Receipt::Duplicate(id.clone());
    assert_eq!(bench.submit(9, &again).await, [stored(dead), stored(working), stored(ready_one)]);
    assert_eq!(bench.changes(&before).await, ["ledger:c1"]);

    let twice = [new, ready_one, new].map(submission);
    assert_eq!(bench.submit(9, &twice).await, [Receipt::Created, stored(ready_one), stored(new)]);
    assert_eq!(bench.ready_list().await, [ready_one.stored(), new.stored()]);
}

/// Returns a submission with all options, to test that nothing of it is added twice.
fn submission(id: &TaskId) -> Submission {
    let large = format!("{:?}", "x".repeat(20_000));
    job_of(large)
        .id(id.clone())
        .expires_in(ms(90_000))
        .biz_id(id.stored())
        .into_submission()
        .unwrap()
}

async fn a_refused_task_is_not_taken_for_stored_by_its_duplicate(bench: Bench) {
    let owner = bench.add(0, job().biz_id("b")).await;
    let id = TaskId::new(bench.queue.clone());
    let call = || job().id(id.clone()).biz_id("b").into_submission().unwrap();
    let taken = Receipt::Duplicate(owner);
    assert_eq!(bench.submit(0, &[call(), call()]).await, [taken.clone(), taken]);
    assert_eq!(bench.state(&id).await, TaskState::Forgotten);
}

async fn the_answer_for_stored_tasks_is_repeated(bench: Bench) {
    let id = TaskId::new(bench.queue.clone());
    bench.submit(0, &[submission(&id)]).await;
    let again = [submission(&id)];
    let first = bench.send(1, 7, &again).await.unwrap();
    assert_eq!(first, [Receipt::Duplicate(id)]);
    assert_eq!(bench.send(2, 7, &again).await.unwrap(), first);
}

async fn a_ledger_has_a_time_of_last_use_only_if_it_is_kept(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    assert_eq!(bench.score("ledgers", "c1").await, None);
    let tasks = jobs(1);
    let batch =
        Batch { queue: &bench.queue, client: "c1", number: 9, since: 0, keep: true, tasks: &tasks };
    bench.at(7).submit(&batch).await.unwrap();
    assert_eq!(bench.score("ledgers", "c1").await, Some(START + 7));
}

async fn without_an_override_the_time_is_that_of_the_store(bench: Bench) {
    let tasks = [ready(job().expires_in(ms(90)))];
    let batch = Batch {
        queue: &bench.queue,
        client: "c1",
        number: 1,
        since: 0,
        keep: false,
        tasks: &tasks,
    };
    bench.now().submit(&batch).await.unwrap();

    let stored = bench.field("tasks", &tasks[0].id().stored()).await.unwrap();
    let accepted = TaskRecord::decode(stored.clone().into_bytes()).unwrap().accepted_ms.unwrap();
    let here = chrono::Utc::now().timestamp_millis().unsigned_abs();
    assert!(accepted.abs_diff(here) < 60_000, "{accepted} is far from {here}");
}

on_both![
    a_plain_task_is_in_the_ready_list,
    a_task_that_can_expire_has_the_time_when_it_was_accepted,
    tasks_of_a_client_with_a_wrong_clock_are_ordered_by_the_stores_clock,
    a_task_with_a_delay_waits_for_its_time,
    a_time_in_the_past_means_at_once,
    a_priority_ranks_a_task_now_or_when_it_is_due,
    the_wakeup_list_holds_one_token_and_gets_it_only_for_sooner_tasks,
    a_lost_wakeup_is_repeated_often_for_a_short_list_and_rarely_for_a_long_one,
    a_thousand_tasks_of_one_call_keep_their_order,
    a_thousand_tasks_with_every_option_fit_one_call,
    a_stored_task_is_returned_and_nothing_is_added,
    a_refused_task_is_not_taken_for_stored_by_its_duplicate,
    the_answer_for_stored_tasks_is_repeated,
    a_ledger_has_a_time_of_last_use_only_if_it_is_kept,
    without_an_override_the_time_is_that_of_the_store,
];
