//! The facts that a handler reads about its attempt, the options of a call, and the name of a
//! worker.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::Bench;
use optimus_core::{Backoff, BoxError, Context, DataKey, QueueName, Task, TaskOptions};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

/// The context of each attempt, as its handler read it.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

/// Records what its context contains, and fails until its last attempt.
#[derive(Serialize, Deserialize)]
struct Ask {}

impl Task for Ask {
    const NAME: &'static str = "ask";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(10);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 })
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Notes>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let (task, queue, number) = (ctx.task(), ctx.queue(), ctx.attempt());
        let (retries, last) = (ctx.max_retry(), ctx.is_last_attempt());
        let notes: Notes = ctx.data().unwrap();
        let line = format!("{task} in {queue}: {number}, {retries} retries, last: {last}");
        notes.0.lock().unwrap().push(line);
        if last { Ok(()) } else { Err("not yet".into()) }
    }
}

on_both! {
    async fn a_handler_knows_its_task_and_queue_and_which_attempt_is_the_last(bench: Bench) {
        let notes = Notes::default();
        let worker = bench.worker().task_type::<Ask>().queues(["mail"]).data(notes.clone());
        let worker = bench.start(worker);
        let call = Ask {}.call().queue("mail").max_retry(2);
        let handle = bench.client.submit(call).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        assert_eq!(
            *notes.0.lock().unwrap(),
            [
                "ask in mail: 1, 2 retries, last: false",
                "ask in mail: 2, 2 retries, last: false",
                "ask in mail: 3, 2 retries, last: true",
            ]
        );
        worker.stop().await;
    }

    async fn a_call_sets_how_many_losses_make_it_dead(bench: Bench) {
        let handle = bench.client.submit(Ask {}.call().max_losses(9)).await.unwrap();
        let view = crate::common::view(&bench, handle.id()).await;
        assert_eq!(view.record.unwrap().unwrap().max_losses, 9);
        let problem = bench.client.submit(Ask {}.call().max_losses(0)).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("max_losses"), "{problem}");
    }

    async fn a_worker_is_shown_under_its_name(bench: Bench) {
        let builder = bench.worker().task_type::<Ask>().data(Notes::default()).name("mailer_1");
        let worker = bench.start(builder);
        let (inspector, queue) = (bench.client.inspector(), QueueName::new("default").unwrap());
        let workers = async || inspector.workers(&queue).await.unwrap();
        eventually("the worker is registered", SOON, async || workers().await.len() == 1).await;
        let shown = workers().await.remove(0);
        assert!(shown.id.as_str().starts_with("mailer_1-"), "{}", shown.id);
        assert_eq!(shown.description.name.as_deref(), Some("mailer_1"));
        worker.stop().await;
    }
}

#[test]
fn a_name_that_no_key_can_contain_is_refused() {
    let worker = optimus_worker::Worker::builder("memory://x").task_type::<Ask>();
    let worker = worker.data(Notes::default()).name("mailer 1");
    let problem = worker.build().expect_err("the name is refused").to_string();
    assert!(problem.contains("worker: name"), "{problem}");
}

#[tokio::test]
async fn an_inline_call_knows_its_task_and_retries() {
    let notes = Notes::default();
    let data = || optimus_core::Data::new().with(notes.clone());
    Ask {}.call().perform_inline_with(data()).await.unwrap_err();
    Ask {}.call().max_retry(0).perform_inline_with(data()).await.unwrap();
    assert_eq!(
        *notes.0.lock().unwrap(),
        ["ask in default: 1, 3 retries, last: false", "ask in default: 1, 0 retries, last: true"]
    );
}
