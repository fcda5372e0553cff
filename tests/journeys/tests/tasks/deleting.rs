//! Tasks that an operator deletes.

use std::time::Duration;

use crate::common::{Bench, Double, Flaky, Gate, Wait};
use optimus_core::{CancelAnswer, Counts, DeleteAnswer, Due, QueueName, Task, TaskState};

const SOON: Duration = Duration::from_secs(20);

fn default() -> QueueName {
    QueueName::new("default").unwrap()
}

async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts(&default()).await.unwrap()
}

on_both! {
    async fn a_dead_task_that_is_deleted_frees_its_biz_id(bench: Bench) {
        let call = || Flaky { attempts: 9, panics: false }.call().max_retry(0).biz_id("order-7");
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let dead = bench.client.submit(call()).await.unwrap();
        assert_eq!(dead.ended().await.unwrap(), TaskState::Dead);
        let again = bench.client.submit(call()).await.unwrap();
        assert_eq!(again.id(), dead.id(), "the dead task keeps its biz id");

        assert_eq!(bench.client.delete(dead.id()).await.unwrap(), DeleteAnswer::Deleted);

        assert!(bench.client.inspector().get(dead.id()).await.unwrap().is_none());
        assert!(dead.result_within(SOON).await.unwrap_err().is_forgotten());
        let again = bench.client.delete(dead.id()).await.unwrap();
        assert_eq!(again, DeleteAnswer::NothingThere, "the task does not exist any more");
        assert!(bench.client.requeue(dead.id()).await.unwrap_err().is_forgotten());
        let other = bench.client.submit(call()).await.unwrap();
        assert_ne!(other.id(), dead.id());
        assert_eq!(other.ended().await.unwrap(), TaskState::Dead);
        worker.stop().await;
        assert_eq!(counts(&bench).await.dead, 1);
    }

    async fn a_task_that_waits_can_be_deleted_and_one_that_runs_can_not(bench: Bench) {
        let gate = Gate::new();
        let builder = bench.worker().task_type::<Wait>().data(gate.clone()).concurrency(1);
        let worker = bench.start(builder);
        let running = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        let waits = bench.client.submit(Wait {}.call()).await.unwrap();
        let waiting = tokio::spawn({
            let waits = waits.clone();
            async move { waits.result_within(SOON).await }
        });
        let problem = bench.client.delete(running.id()).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
        assert!(problem.to_string().contains("cancel it, and delete it once"), "{problem}");
        assert_eq!(bench.client.delete(waits.id()).await.unwrap(), DeleteAnswer::Deleted);
        let problem = waiting.await.unwrap().unwrap_err();
        assert!(problem.is_forgotten(), "the wait ends with an error: {problem}");
        gate.open.hit();
        running.result_within(SOON).await.unwrap();
        let problem = bench.client.delete(running.id()).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
        worker.stop().await;
        assert_eq!(gate.began.hits(), 1, "a deleted task does not run");
        let end = Counts { recent_successes: 1, purged: 1, ..Counts::default() };
        assert_eq!(counts(&bench).await, end);
    }

    async fn a_state_of_a_queue_is_emptied_page_by_page(bench: Bench) {
        let calls = (0..300).map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        let later = Double { number: 1 }.call().due(Due::In(SOON));
        let stays = bench.client.submit(later).await.unwrap();
        let ids = handles.iter().map(|handle| handle.id().clone());
        for answer in bench.client.cancel_all(ids).await {
            assert_eq!(answer.unwrap(), CancelAnswer::Cancelled);
        }
        let (inspector, queue) = (bench.client.inspector(), default());
        let (mut after, mut deleted) = (None, 0);
        loop {
            let state = TaskState::Cancelled;
            let page = inspector.list(&queue, state, after.as_ref(), 100).await.unwrap();
            let ids = page.rows.into_iter().map(|row| row.id);
            for answer in bench.client.delete_all(ids).await {
                assert_eq!(answer.unwrap(), DeleteAnswer::Deleted);
                deleted += 1;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(deleted, 300);
        let counts = counts(&bench).await;
        assert_eq!((counts.cancelled, counts.cancelled_bytes, counts.delayed), (0, 0, 1));
        assert_eq!(stays.status().await.unwrap(), TaskState::Delayed);
    }
}
