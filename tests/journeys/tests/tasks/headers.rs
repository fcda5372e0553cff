//! Headers, which a call passes to its handler in addition to the arguments.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::Bench;
use optimus_core::{
    Backoff, BoxError, Context, DataKey, QueueName, Task, TaskId, TaskOptions, TaskRow, TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

/// A text with each character that an encoder must escape.
const AWKWARD: &str = "a\nb \"c\" \\ {} \0 ü";

/// The headers that attempts received.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

/// Records its headers, and fails until its last attempt. The last attempt fails only if the task
/// `dies`.
#[derive(Serialize, Deserialize)]
struct Note {
    dies: bool,
}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(10);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 }).max_retry(2)
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Received>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let received: Received = ctx.data().unwrap();
        received.0.lock().unwrap().push(ctx.headers().clone());
        assert_eq!(ctx.header("tenant"), ctx.headers().get("tenant").map(String::as_str));
        if self.dies || !ctx.is_last_attempt() { Err("not yet".into()) } else { Ok(()) }
    }
}

fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn row(bench: &Bench, state: TaskState, id: &TaskId) -> TaskRow {
    let queue = QueueName::new("default").unwrap();
    let page = bench.client.inspector().list(&queue, state, None, 100).await.unwrap();
    page.rows.into_iter().find(|row| row.id == *id).expect("the task is on the page")
}

on_both! {
    async fn headers_reach_each_attempt_also_after_a_requeue(bench: Bench) {
        let received = Received::default();
        let call = Note { dies: true }.call().header("tenant", "x").header("note", AWKWARD);
        let call = call.header("tenant", "acme").biz_id("1").priority(3);
        let handle = bench.client.submit(call).await.unwrap();
        let expected = of(&[("tenant", "acme"), ("note", AWKWARD)]);
        assert_eq!(row(&bench, TaskState::Ready, handle.id()).await.headers, expected);
        let worker = bench.start(bench.worker().task_type::<Note>().data(received.clone()));
        assert!(handle.result_within(SOON).await.unwrap_err().is_dead());
        assert_eq!(row(&bench, TaskState::Dead, handle.id()).await.headers, expected);
        let record = crate::common::view(&bench, handle.id()).await.record.unwrap().unwrap();
        assert_eq!(record.headers, expected);

        bench.client.requeue(handle.id()).await.unwrap();
        let attempts = || received.0.lock().unwrap().clone();
        eventually("the task has run again", SOON, async || attempts().len() == 6).await;
        assert!(attempts().iter().all(|headers| *headers == expected), "{:?}", attempts());
        worker.stop().await;
    }

    async fn a_task_without_headers_has_none(bench: Bench) {
        let received = Received::default();
        let worker = bench.start(bench.worker().task_type::<Note>().data(received.clone()));
        let handle = bench.client.submit(Note { dies: false }.call().max_retry(0)).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        assert_eq!(*received.0.lock().unwrap(), [of(&[])]);
        assert_eq!(row(&bench, TaskState::Success, handle.id()).await.headers, of(&[]));
        worker.stop().await;
    }

    async fn headers_that_can_not_be_stored_are_refused_and_the_other_calls_are_not(bench: Bench) {
        let call = || Note { dies: false }.call();
        let large = call().header("large", "x".repeat(4_092));
        let too_many = (0..33).fold(call(), |call, n| call.header(n.to_string(), ""));
        let calls = [
            call().header("a b", ""),
            too_many,
            large,
            call().header("large", "x".repeat(4_091)),
        ];
        let problem = bench.client.submit_all(calls).await.unwrap_err();
        let answers: Vec<bool> = problem.answers.iter().map(Result::is_ok).collect();
        assert_eq!(answers, [false, false, false, true]);
        for answer in &problem.answers[..3] {
            assert!(answer.as_ref().unwrap_err().is_invalid());
        }
    }
}

#[tokio::test]
async fn an_inline_call_has_its_headers() {
    let received = Received::default();
    let data = || optimus_core::Data::new().with(received.clone());
    let call = || Note { dies: false }.call().max_retry(0).header("tenant", "acme");
    call().perform_inline_with(data()).await.unwrap();
    assert_eq!(*received.0.lock().unwrap(), [of(&[("tenant", "acme")])]);
    let problem = call().header("", "").perform_inline_with(data()).await.unwrap_err();
    assert!(problem.to_string().contains("the name of a header"), "{problem}");
}
