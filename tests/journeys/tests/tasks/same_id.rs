//! Several clients submit one id. There is only one task.

use std::time::Duration;

use crate::common::{Bench, Double, Gate, Raw, Wait};
use optimus_core::{QueueName, Task, TaskId};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

fn new_id() -> TaskId {
    TaskId::new(QueueName::new("default").unwrap())
}

on_both! {
    async fn a_task_that_two_clients_submit_under_one_id_runs_once(bench: Bench) {
        let other = bench.client_builder().connect().await.unwrap();
        let id = new_id();
        let call = || Double { number: 21 }.call().id(id.clone());
        let first = bench.client.submit(call()).await.unwrap();
        let second = other.submit(call()).await.unwrap();
        assert_eq!((first.is_duplicate(), second.is_duplicate()), (false, true));
        assert_eq!((first.id(), second.id()), (&id, &id));
        let counts = bench.client.inspector().counts(id.queue()).await.unwrap();
        assert_eq!((counts.ready, counts.recent_successes), (1, 0));
        let worker = bench.start(bench.worker().task_type::<Double>());
        assert_eq!(second.result_within(SOON).await.unwrap(), 42);
        worker.stop().await;
    }

    async fn an_id_of_another_queue_than_the_call_names_is_refused(bench: Bench) {
        let id = new_id();
        let call = |queue: &str| Double { number: 21 }.call().id(id.clone()).queue(queue);
        let problem = bench.client.submit(call("bulk")).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("bulk"), "{problem}");
        assert!(!bench.client.submit(call("default")).await.unwrap().is_duplicate());
    }

    async fn a_task_under_an_id_without_a_time_does_not_delay_later_tasks(bench: Bench) {
        let (client, gate) = (&bench.client, Gate::new());
        client.submit_all((0..100).map(|_| Wait {}.call().priority(-100))).await.unwrap();
        let id = "default/f47ac10b-58cc-4372-a567-0e02b2c3d479".parse().unwrap();
        let first = client.submit(Double { number: 21 }.call().id(id)).await.unwrap();
        let plain: Vec<_> = (0..10).map(|number| Double { number }.call()).collect();
        let behind = client.submit_all(plain).await.unwrap();
        // A task of low priority would keep the only slot.
        let worker = bench.worker().data(gate.clone()).concurrency(1);
        let worker = bench.start(worker.task_type::<Wait>().task_type::<Double>());
        assert_eq!(first.result_within(SOON).await.unwrap(), 42);
        for handle in &behind {
            handle.result_within(SOON).await.unwrap();
        }
        gate.open.hit();
        worker.stop().await;
    }

    async fn one_uuid_in_many_queues_is_a_task_in_each_that_runs_once(bench: Bench) {
        let (gate, uuid) = (Gate::new(), new_id().uuid());
        let queues: Vec<String> = (0..40).map(|n| format!("q{n}")).collect();
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for (n, queue) in queues.iter().enumerate() {
            let id = format!("{queue}/{uuid}").parse().unwrap();
            if n % 2 == 0 {
                long.push(bench.client.submit(Wait {}.call().id(id)).await.unwrap());
            } else {
                short.push(bench.client.submit(Double { number: 21 }.call().id(id)).await.unwrap());
            }
        }
        let worker = bench.worker().queues(&queues).data(gate.clone()).concurrency(100);
        let worker = bench.start(worker.task_type::<Wait>().task_type::<Double>());
        for handle in &short {
            assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
        }
        gate.began.wait_for(20).await;
        // At each renewal, the worker compares the tasks that it holds with those that Redis
        // records.
        let inspector = bench.client.inspector();
        let mut renewals = Vec::new();
        eventually("the leases are renewed three times", SOON, async || {
            let worker = inspector.workers(long[0].id().queue()).await.unwrap().remove(0);
            renewals.push(worker.lease_until);
            renewals.dedup();
            renewals.len() > 3
        })
        .await;
        assert_eq!(gate.began.hits(), 20, "a task began while it ran");
        gate.open.hit();
        for handle in &long {
            handle.result_within(SOON).await.unwrap();
        }
        worker.stop().await;
        assert_eq!(gate.began.hits(), 20);
    }
}

/// Returns the client that waits for a task. The completion message removes the entry.
async fn waiting_client(raw: &mut Raw, waiters: &str, id: &TaskId) -> Option<String> {
    let clients = raw.run(&format!("HGET {waiters} {}", id.stored())).await;
    clients.into_iter().next().map(|client| String::from_utf8(client).unwrap())
}

/// Such a completion message stays in the completion list if a wait for the first run was given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_message_of_the_first_run_ends_no_wait_for_the_second() {
    let bench = Bench::on_redis().await;
    let (mut raw, id, gate) = (bench.raw().await, new_id(), Gate::new());
    let submit = async || bench.client.submit(Wait {}.call().id(id.clone())).await.unwrap();
    gate.open.hit();
    let worker = bench.start(bench.worker().data(gate).task_type::<Wait>());
    submit().await.result_within(SOON).await.unwrap();
    worker.stop().await;
    let second = submit().await;
    assert!(!second.is_duplicate());
    let waiting = tokio::spawn(async move { second.result_within(SOON).await });
    let waiters = bench.key("default", "waiters");
    eventually("the client waits for the task", SOON, async || {
        waiting_client(&mut raw, &waiters, &id).await.is_some()
    })
    .await;
    let client = waiting_client(&mut raw, &waiters, &id).await.unwrap();
    raw.run(&format!("HDEL {waiters} {}", id.stored())).await;
    let (completion_listener, completion) = (
        bench.key("default", &format!("completions:{client}")),
        format!("{} success", id.stored()),
    );
    raw.run_words(&[b"RPUSH", completion_listener.as_bytes(), completion.as_bytes()]).await;
    eventually("the completion message is read", SOON, async || {
        waiting.is_finished() || waiting_client(&mut raw, &waiters, &id).await.is_some()
    })
    .await;
    assert!(!waiting.is_finished(), "the second run has not begun");
    waiting.abort();
}

/// A check of one of many tasks also returns the following tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_the_first_run_is_not_taken_for_that_of_the_second() {
    let bench = Bench::on_redis().await;
    let client = &bench.client;
    let calls = (0..40).map(|number| Double { number }.call());
    let handles = client.submit_all(calls).await.unwrap();
    let worker = bench.start(bench.worker().task_type::<Double>());
    let (inspector, queue) = (client.inspector(), QueueName::new("default").unwrap());
    eventually("all tasks have ended", SOON, async || {
        inspector.counts(&queue).await.unwrap().recent_successes == 40
    })
    .await;
    for handle in &handles[..20] {
        handle.result_within(SOON).await.unwrap();
    }
    for (number, handle) in (1_020..).zip(&handles[20..]) {
        let id = handle.id().clone();
        let second = client.submit(Double { number }.call().id(id.clone())).await.unwrap();
        assert!(!second.is_duplicate());
        let second = if number % 2 == 0 { second } else { client.handle(id) };
        assert_eq!(second.result_within(SOON).await.unwrap(), 2 * number);
    }
    worker.stop().await;
}
