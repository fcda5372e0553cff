//! Waits for many tasks, for a long time, and while Redis loses data.

use std::time::Duration;

use crate::common::{Bench, Double, all_have_ended, script_calls, thousands_that_have_ended};
use optimus_core::{CancelAnswer, Due, QueueName, Task, TaskOptions, TaskState};
use optimus_testkit::{RedisServer, eventually};

const SOON: Duration = Duration::from_secs(60);

idle_task!(Unit, "unit", TaskOptions::new());

on_both! {
    async fn a_wait_that_takes_too_long_names_the_state_of_the_task(bench: Bench) {
        let blocked = || Unit {}.call().lane("one");
        let first = bench.client.submit(blocked()).await.unwrap();
        let (soon, late) = (Duration::from_millis(50), Duration::from_secs(3600));
        for (call, state) in [
            (Unit {}.call().queue("mial"), "still ready: does a worker serve the queue mial?"),
            (Unit {}.call().due(Due::In(late)), "it is delayed"),
            (blocked(), "it is blocked: lane one (width 1): no task waits before it; the lane is"),
            (Unit {}.call().after(&first), "it is blocked: it waits until"),
        ] {
            let handle = bench.client.submit(call).await.unwrap();
            let problem = handle.result_within(soon).await.unwrap_err();
            assert!(problem.is_timeout() && problem.to_string().contains(state), "{problem}");
        }
        drop(first);
    }

    async fn a_handle_of_another_type_says_that_the_task_returns_nothing(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Unit>());
        let handle = bench.client.submit(Unit {}.call()).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        let other = bench.client.handle::<String>(handle.id().clone());
        let problem = other.result().await.unwrap_err();
        assert!(problem.is_forgotten() && problem.to_string().contains("TaskHandle<()>"));
        worker.stop().await;
    }

    async fn five_thousand_that_return_nothing_are_awaited_after_they_have_ended(bench: Bench) {
        let calls = (0..5_000).map(|_| Unit {}.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Unit>().concurrency(256));
        all_have_ended(&bench).await;
        for handle in &handles {
            handle.result_within(SOON).await.unwrap();
        }
        for handle in &handles {
            assert_eq!(handle.status().await.unwrap(), TaskState::Success);
        }
        worker.stop().await;
    }

    async fn five_thousand_are_awaited_at_once(bench: Bench) {
        let calls = (0..5_000).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let waits = handles.iter().map(|handle| handle.result_within(SOON));
        let waits = futures_util::future::join_all(waits);
        let worker = bench.start(bench.worker().task_type::<Double>().concurrency(256));
        for (number, result) in (0..).zip(waits.await) {
            assert_eq!(result.unwrap(), 2 * number);
        }
        worker.stop().await;
    }
}

/// One round trip for each result would take several times as long as the tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_are_awaited_in_turn_are_fetched_together() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let handles = thousands_that_have_ended(&bench).await;
    let before = script_calls(&mut raw).await;
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    let calls = script_calls(&mut raw).await - before;
    assert!(calls < 100, "{calls} calls for 5,000 results");
}

/// The answer to a check may include the states of other tasks. Such a state is used later only if
/// it is final.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_was_undone_after_it_was_seen_is_checked_again() {
    let bench = Bench::on_redis().await;
    let calls = (0..40).map(|number| Double { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    for handle in &handles[20..] {
        assert_eq!(handle.cancel().await.unwrap(), CancelAnswer::Cancelled);
    }
    let worker = bench.start(bench.worker().task_type::<Double>());
    for (number, handle) in (0..).zip(&handles[..20]) {
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    for handle in &handles[20..] {
        bench.client.requeue(handle.id()).await.unwrap();
    }
    for (number, handle) in (20..).zip(&handles[20..]) {
        assert_eq!(handle.ended().await.unwrap(), TaskState::Success);
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number, "a second time");
    }
    worker.stop().await;
}

/// A wait that was given up, a cancel and a requeue leave such a completion message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_message_of_an_end_that_was_undone_ends_no_wait() {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    let handle = bench.client.submit(Unit {}.call()).await.unwrap();
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.result_within(SOON).await }
    });
    let (waiters, id) = (bench.key("default", "waiters"), handle.id().stored());
    let mut completion_listener = Vec::new();
    while completion_listener.is_empty() {
        completion_listener = raw.run(&format!("HGET {waiters} {id}")).await;
    }
    let completion_listener =
        format!("completions:{}", String::from_utf8(completion_listener.remove(0)).unwrap());
    let completion_listener = bench.key("default", &completion_listener);
    raw.run_words(&[
        b"RPUSH",
        completion_listener.as_bytes(),
        format!("{id} cancelled").as_bytes(),
    ])
    .await;
    while !raw.run(&format!("LRANGE {completion_listener} 0 -1")).await.is_empty() {}
    let worker = bench.start(bench.worker().task_type::<Unit>());
    waiting.await.unwrap().unwrap();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_breaks_no_connection_hides_no_queue() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let inspector = bench.client.inspector();
    bench.client.submit(Unit {}.call()).await.unwrap();
    let queues = inspector.queues().await.unwrap();
    assert_eq!(queues, [QueueName::new("default").unwrap()]);
    bench.raw().await.run("FLUSHALL").await;
    assert!(inspector.queues().await.unwrap().is_empty());
    bench.client.submit(Unit {}.call()).await.unwrap();
    assert_eq!(inspector.queues().await.unwrap(), queues);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_ends_leaves_its_ledgers_to_the_janitor_once_it_has_no_handle() {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    let client = bench.client_builder().connect().await.unwrap();
    let first = client.submit(Unit {}.call()).await.unwrap();
    drop(client.submit(Unit {}.call().queue("other")).await.unwrap());
    drop(client);
    let mut left = async || {
        let mut left = 0;
        for queue in ["default", "other"] {
            let ledgers = bench.key(queue, "ledgers");
            left += raw.run(&format!("ZRANGEBYSCORE {ledgers} 0 0")).await.len();
        }
        left
    };
    assert_eq!(left().await, 0, "a handle lives");
    drop(first);
    eventually("both ledgers remain", SOON, async || left().await == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_that_submit_and_end_leave_no_ledger_behind() {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    for _ in 0..200 {
        let client = bench.client_builder().connect().await.unwrap();
        drop(client.submit(Unit {}.call()).await.unwrap());
    }
    let known = format!("ZRANGE {} 0 -1", bench.key("default", "ledgers"));
    let stored = format!("KEYS {}", bench.key("default", "ledger:*"));
    let mut left = async || (raw.run(&known).await.len(), raw.run(&stored).await.len());
    assert_eq!(left().await, (200, 200));
    let worker = bench.start(bench.worker().task_type::<Unit>());
    let are_gone = async || left().await == (0, 0);
    eventually("a janitor has removed all ledgers", SOON, are_gone).await;
    worker.stop().await;
}

/// The older state may be that of a replica that was behind, or of a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_returns_to_an_older_state_never_reports_a_success_that_it_lost() {
    let mut server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let worker = bench.start(bench.worker().task_type::<Unit>());
    let calls = || (0..2_000).map(|_| Unit {}.call());
    let kept = bench.client.submit_all(calls()).await.unwrap();
    all_have_ended(&bench).await;
    raw.run("SAVE").await;
    let lost = bench.client.submit_all(calls()).await.unwrap();
    all_have_ended(&bench).await;
    for handle in &lost {
        assert_eq!(handle.status().await.unwrap(), TaskState::Success);
    }
    server.kill();
    server.restart();

    let again = async || bench.client.broker().ping().await.is_ok();
    eventually("Redis runs again", SOON, again).await;
    for _ in 0..3 {
        for handle in &lost {
            assert_eq!(handle.status().await.unwrap(), TaskState::Forgotten);
        }
        for handle in &kept {
            handle.result_within(SOON).await.unwrap();
        }
        bench.client.submit_all(calls()).await.unwrap();
        all_have_ended(&bench).await;
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_known_success_is_forgotten_after_its_time() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let call = || {
        let call = Double { number: 1 }.call().result_ttl(Duration::from_millis(100));
        call.biz_id("once").biz_window(Duration::from_secs(600))
    };
    let first = bench.client.submit(call()).await.unwrap();
    assert_eq!(first.result_within(SOON).await.unwrap(), 2);
    let again = bench.client.submit(call()).await.unwrap();
    assert!(again.is_duplicate());
    let gone = async || again.result().await.is_err();
    eventually("the result has expired", SOON, gone).await;
    assert_eq!(again.status().await.unwrap(), TaskState::Success);
    for handle in [first, again] {
        let problem = handle.result().await.unwrap_err();
        assert!(problem.is_forgotten(), "{problem}");
        assert!(
            problem.to_string().contains("has succeeded, but no result of it is kept"),
            "{problem}"
        );
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_no_longer_in_the_list_of_successes_is_forgotten() {
    let bench = Bench::on_redis().await;
    let mut raw = bench.raw().await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let call = Double { number: 1 }.call().result_ttl(Duration::from_millis(100));
    let handle = bench.client.submit(call).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    raw.run(&format!("LTRIM {} 1 0", bench.key("default", "success"))).await;
    let elsewhere = bench.client.handle::<i64>(handle.id().clone());
    let gone = async || elsewhere.status().await.unwrap() == TaskState::Forgotten;
    eventually("the result has expired", SOON, gone).await;
    assert!(elsewhere.result().await.unwrap_err().is_forgotten());
    assert_eq!(
        handle.status().await.unwrap(),
        TaskState::Success,
        "the submitter knows that the task has succeeded"
    );
    let problem = handle.result().await.unwrap_err();
    assert!(problem.is_forgotten() && problem.to_string().contains("has succeeded"), "{problem}");
    assert!(bench.client.inspector().get(handle.id()).await.unwrap().is_none());
    for problem in [handle.cancel().await.err(), bench.client.requeue(handle.id()).await.err()] {
        assert!(problem.unwrap().is_forgotten());
    }
    worker.stop().await;
}
