//! How a cancel reaches a running task.

use std::time::Duration;

use crate::common::{Bench, Double, Gate, Wait, blocking_task::KeepThread};
use optimus_core::{CancelAnswer, Key, QueueName, Task, TaskId, TaskState};
use optimus_testkit::{Hold, RedisServer, eventually};

const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);
/// The lease. It is so long that no heartbeat returns a cancel during a test.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test]
async fn one_handle_of_a_lane_pauses_it_and_cancels_its_tasks() {
    let bench = Bench::on_memory().await;
    let call = |lane: &str| Double { number: 1 }.call().lane(lane);
    for lane in ["shop", "shop", "other"] {
        bench.client.submit(call(lane)).await.unwrap();
    }
    let shop = bench.client.lane("default", "shop");
    assert!(shop.pause("ann", "their API is down").await.unwrap().is_known);
    let gate = shop.gate().get().await.unwrap().unwrap();
    assert!(gate.shut.unwrap().to_string().contains("ann"));
    let worker = bench.start(bench.worker().task_type::<Double>());
    let counts = async || {
        let queue = QueueName::new("default").unwrap();
        bench.client.inspector().counts(&queue).await.unwrap()
    };
    let other_ran = async || counts().await.recent_successes == 1;
    eventually("the task of the other lane has run", SOON, other_ran).await;
    assert_eq!(shop.cancel().await.unwrap().cancelled, 2);
    shop.resume().await.unwrap();
    assert!(shop.gate().get().await.unwrap().is_none_or(|gate| gate.shut.is_none()));
    let last = bench.client.submit(call("shop")).await.unwrap();
    last.result_within(SOON).await.unwrap();
    assert_eq!((counts().await.cancelled, counts().await.recent_successes), (2, 2));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_cancel_of_an_earlier_attempt_stops_no_later_one() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let gate = Gate::new();
    let builder = bench.worker().lease(LONG).task_type::<Wait>().data(gate.clone());
    let worker = bench.start(builder);
    let cancelled = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    let id = crate::common::view(&bench, cancelled.id()).await;
    let holder = id.worker.expect("it works").to_string();
    let mut raw = bench.raw().await;
    let stored = cancelled.id().stored();
    let working = bench.key("default", &format!("working:{holder}"));
    let token = raw.run_words(&[b"HGET", working.as_bytes(), stored.as_bytes()]).await.remove(0);
    assert_eq!(cancelled.cancel().await.unwrap(), CancelAnswer::AskedToStop);
    assert!(cancelled.result_within(SOON).await.unwrap_err().is_cancelled());
    bench.client.requeue(cancelled.id()).await.unwrap();
    gate.began.wait_for(2).await;

    // If the worker had not listened, the cancel would have left this entry in the list.
    let late = [stored.as_bytes(), b" ", &token].concat();
    let wakeups = bench.key("default", &format!("wake:{holder}"));
    raw.run_words(&[b"RPUSH", wakeups.as_bytes(), &late]).await;
    // The worker receives this later cancel, so it has also received the earlier one.
    let marker = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(3).await;
    assert_eq!(marker.cancel().await.unwrap(), CancelAnswer::AskedToStop);
    assert!(marker.result_within(SOON).await.unwrap_err().is_cancelled());

    gate.open.hit();
    cancelled.result_within(SOON).await.unwrap();
    eventually("the list is empty", SOON, async || {
        raw.run(&format!("EXISTS {wakeups}")).await == [b"0"]
    })
    .await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_redis_does_not_answer_is_not_taken_for_one_that_takes_long() {
    let mut server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let waiting = bench.client.submit(Wait {}.call()).await.unwrap();
    server.kill();
    let problem = waiting.cancel().confirmed_within(SHORT).await.unwrap_err();
    assert!(problem.is_unavailable() || problem.is_unknown_outcome(), "{problem}");
    let key = Key::new("default", "wait", "none");
    let problem = bench.client.cancel_key(&key).confirmed_within(SHORT).await.unwrap_err();
    assert!(problem.is_unavailable(), "{problem}");
}

on_both! {
    async fn a_task_is_found_and_cancelled_by_its_biz_id(bench: Bench) {
        let (client, inspector) = (&bench.client, bench.client.inspector());
        let key = Key::new("default", "double", "order-7");
        assert_eq!(inspector.find(&key).await.unwrap(), None);
        let call = || Double { number: 1 }.call().biz_id("order-7");
        let first = client.submit(call()).await.unwrap();
        assert_eq!(inspector.find(&key).await.unwrap().as_ref(), Some(first.id()));
        assert_eq!(inspector.find(&key.clone().queue("other")).await.unwrap(), None);
        assert_eq!(client.cancel(first.id()).await.unwrap(), CancelAnswer::Cancelled);
        assert_eq!(inspector.find(&key).await.unwrap(), None);
        let second = client.submit(call()).await.unwrap();
        assert_eq!(inspector.find(&key).await.unwrap().as_ref(), Some(second.id()));
        assert!(inspector.find(&key.queue("no {name}")).await.unwrap_err().is_invalid());
    }

    async fn a_cancel_waits_for_the_end_if_it_is_to_be_confirmed(bench: Bench) {
        let gate = Gate::new();
        let builder = bench.worker().lease(LONG).concurrency(1).task_type::<Wait>();
        let worker = bench.start(builder.task_type::<Double>().data(gate.clone()));
        let running = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        let waiting = bench.client.submit(Wait {}.call()).await.unwrap();
        assert_eq!(waiting.cancel().confirmed().await.unwrap(), TaskState::Cancelled);
        let ended = bench.client.cancel(running.id()).confirmed().await.unwrap();
        assert_eq!(ended, TaskState::Cancelled);
        assert_eq!(running.status().await.unwrap(), TaskState::Cancelled);
        assert_eq!(running.cancel().confirmed().await.unwrap(), TaskState::Cancelled, "a repeat");
        let done = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
        done.ended().await.unwrap();
        assert!(done.cancel().confirmed().await.unwrap_err().is_wrong_state());
        worker.stop().await;
    }

    async fn the_wait_for_the_end_of_a_cancelled_task_can_be_limited(bench: Bench) {
        let hold = Hold::new();
        let builder = bench.worker().lease(LONG).concurrency(1).task_type::<KeepThread>();
        let worker = bench.start(builder.data(hold.clone()));
        let running = bench.client.submit(KeepThread {}.call()).await.unwrap();
        hold.arrivals().wait_for(1).await;
        let problem = running.cancel().confirmed_within(SHORT).await.unwrap_err();
        let waiting = bench.client.submit(KeepThread {}.call()).await.unwrap();
        let ended = waiting.cancel().confirmed_within(SOON).await;
        hold.release();
        assert!(problem.is_timeout() && problem.to_string().contains("is running it"), "{problem}");
        assert_eq!(ended.unwrap(), TaskState::Cancelled);
        worker.stop().await;
    }

    async fn a_task_is_cancelled_by_its_key(bench: Bench) {
        let (client, key) = (&bench.client, Key::new("default", "double", "order-7"));
        let none = client.cancel_key(&key).await.unwrap_err();
        let text = none.to_string();
        assert!(none.is_forgotten() && text.contains("default/double with biz id"), "{text}");
        let call = || Double { number: 1 }.call().biz_id("order-7");
        let first = client.submit(call()).await.unwrap();
        assert_eq!(client.cancel_key(&key).await.unwrap(), CancelAnswer::Cancelled);
        let second = client.submit(call()).await.unwrap();
        assert_eq!(client.cancel_key(&key).confirmed().await.unwrap(), TaskState::Cancelled);
        for handle in [first, second] {
            assert_eq!(handle.status().await.unwrap(), TaskState::Cancelled);
        }
    }

    async fn many_are_cancelled_together_and_each_is_answered(bench: Bench) {
        let gate = Gate::new();
        let builder = bench.worker().lease(LONG).concurrency(4).task_type::<Wait>();
        let worker = bench.start(builder.queues(["default", "other"]).data(gate.clone()));
        // The last call takes these tasks, so that no other task begins before it is cancelled.
        let running = (0..4).map(|_| Wait {}.call().queue("other"));
        let running = bench.client.submit_all(running).await.unwrap();
        gate.began.wait_for(4).await;
        let waiting = (0..300).map(|at| Wait {}.call().queue(["default", "other"][at % 2]));
        let waiting = bench.client.submit_all(waiting).await.unwrap();
        let unknown = TaskId::new(running[0].id().queue().clone());

        let handles = waiting.iter().chain(&running);
        let ids = handles.map(|handle| handle.id().clone()).chain([unknown]);
        let mut answers = bench.client.cancel_all(ids).await;
        assert!(answers.pop().unwrap().unwrap_err().is_forgotten());
        for answer in answers.split_off(waiting.len()) {
            assert_eq!(answer.unwrap(), CancelAnswer::AskedToStop);
        }
        for answer in answers {
            assert_eq!(answer.unwrap(), CancelAnswer::Cancelled);
        }
        for handle in running.iter().chain(&waiting) {
            assert_eq!(handle.ended().await.unwrap(), TaskState::Cancelled);
        }
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_away_is_waited_for_once_however_many_are_cancelled() {
    let mut server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let calls = (0..2_000).map(|number| Double { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    server.kill();
    let cancelled = bench.client.cancel_all(handles.iter().map(|handle| handle.id().clone()));
    let answers = tokio::time::timeout(SOON, cancelled).await.unwrap();
    assert_eq!(answers.len(), 2_000);
    let is_away =
        |problem: &optimus_core::Error| problem.is_unavailable() || problem.is_unknown_outcome();
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(is_away)));
}
