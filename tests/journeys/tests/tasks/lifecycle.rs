//! The lives of tasks, from a submit to a final state.

use std::time::Duration;

use crate::common::{Bench, Double, Flaky, Gate, Wait};
use optimus_core::{CancelAnswer, OnLost, Reason, Task, TaskState};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

on_both! {
    async fn a_submitted_task_runs_and_its_result_comes_back(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>());
        let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
        assert_eq!(handle.status().await.unwrap(), TaskState::Success);
        worker.stop().await;
    }

    async fn a_failing_task_is_retried_until_it_succeeds(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let call = Flaky { attempts: 3, panics: false }.call();
        let handle = bench.client.submit(call).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
        worker.stop().await;
    }

    async fn a_task_out_of_retries_is_dead_with_each_attempts_error(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let call = Flaky { attempts: 9, panics: true }.call().max_retry(2);
        let handle = bench.client.submit(call).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead(), "{problem}");
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!(task.state, TaskState::Dead);
        let attempts: Vec<u32> = task.errors.iter().map(|error| error.attempt).collect();
        assert_eq!(attempts, [1, 2, 3]);
        assert!(task.errors.iter().all(|error| error.reason == Reason::Panicked));
        assert!(task.errors[0].message.contains("asked to panic"));
        worker.stop().await;
    }

    async fn a_delayed_task_waits_for_its_time(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>());
        let started = std::time::Instant::now();
        let due = optimus_core::Due::In(Duration::from_millis(300));
        let handle = bench.client.submit(Double { number: 1 }.call().due(due)).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        assert!(started.elapsed() >= Duration::from_millis(300));
        worker.stop().await;
    }

    async fn a_thousand_tasks_of_one_batch_all_run(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>());
        let calls = (0..2500).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        for (number, handle) in (0..).zip(handles) {
            assert_eq!(handle.result_within(SOON).await.unwrap(), number * 2);
        }
        worker.stop().await;
    }

    async fn a_running_task_that_is_cancelled_is_asked_to_stop_and_ends_cancelled(bench: Bench) {
        let gate = Gate::new();
        let worker = bench.start(bench.worker().task_type::<Wait>().data(gate.clone()));
        let handle = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        assert_eq!(handle.status().await.unwrap(), TaskState::Working);
        assert_eq!(handle.cancel().await.unwrap(), CancelAnswer::AskedToStop);
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        worker.stop().await;
    }

    async fn a_shutdown_gives_back_what_does_not_end_in_time(bench: Bench) {
        let gate = Gate::new();
        let builder = bench.worker().task_type::<Wait>().data(gate.clone());
        let worker = bench.start(builder.shutdown_grace(Duration::from_millis(50)));
        let handle = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        worker.stop().await;
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!((task.state, task.failures, task.losses), (TaskState::Ready, 0, 0));
        assert!(bench.client.inspector().workers(handle.id().queue()).await.unwrap().is_empty());
    }

    async fn a_shutdown_marks_a_task_dead_that_began_and_may_start_only_once(bench: Bench) {
        let gate = Gate::new();
        let worker = || bench.worker().task_type::<Wait>().data(gate.clone());
        let first = bench.start(worker().shutdown_grace(Duration::from_millis(50)));
        let once = Wait {}.call().on_lost(OnLost::Dead).max_retry(0);
        let handle = bench.client.submit(once).await.unwrap();
        gate.began.wait_for(1).await;
        first.stop().await;
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!(task.state, TaskState::Dead);
        let second = bench.start(worker());
        gate.open.hit();
        let other = bench.client.submit(Wait {}.call()).await.unwrap();
        other.result_within(SOON).await.unwrap();
        assert_eq!(gate.began.hits(), 2);
        second.stop().await;
    }

    async fn what_still_runs_at_a_shutdown_keeps_its_lease(bench: Bench) {
        let (gate, lease) = (Gate::new(), Duration::from_secs(1));
        let builder = || bench.worker().lease(lease).task_type::<Wait>().data(gate.clone());
        let worker = bench.start(builder());
        let handle = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        // A second worker would take the tasks that the first one loses.
        let rival = bench.start(builder());
        let lease_until_ms = async || {
            let workers = bench.client.inspector().workers(handle.id().queue()).await.unwrap();
            let holder = workers.iter().find(|worker| worker.running.contains(handle.id()));
            holder.map_or(0, |worker| worker.lease_until.timestamp_millis())
        };
        let begun_ms = lease_until_ms().await;
        let stopping = tokio::spawn(worker.stop());
        eventually("the lease is renewed twice", SOON, async || {
            lease_until_ms().await > begun_ms + 2_000
        })
        .await;
        gate.open.hit();
        handle.result_within(SOON).await.unwrap();
        assert_eq!(gate.began.hits(), 1);
        stopping.await.unwrap();
        rival.stop().await;
    }
}
