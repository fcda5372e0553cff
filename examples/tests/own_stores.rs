//! Five tests in one program, each with its own store. They run in parallel, on the same queue and
//! with the same biz ids, and do not affect each other. `docs/guides/testing.md` shows how this
//! works.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus::{Backoff, BoxError, Client, Context, QueueName, TaskState, Worker};

const MOMENT: Backoff = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };

/// The sum of the numbers that the worker of one test has added.
#[derive(Clone, Default)]
struct Sum(Arc<AtomicU64>);

#[optimus::task(queue = "sums", biz_id = "{number}")]
async fn add(number: u64, #[data] sum: Sum, ctx: Context) -> Result<u32, BoxError> {
    sum.0.fetch_add(number, Ordering::Relaxed);
    Ok(ctx.attempt())
}

#[optimus::task(queue = "sums", max_retry = 2)]
async fn stubborn(ctx: Context) -> Result<u32, BoxError> {
    if ctx.is_last_attempt() { Ok(ctx.attempt()) } else { Err("not yet".into()) }
}

#[optimus::task(queue = "sums")]
async fn add_up_to(last: u64) -> Result<(), BoxError> {
    for number in 1..=last {
        add(number).perform_async().await?.result().await?;
    }
    Ok(())
}

/// Returns a client and a worker of the store with this test's name, and the worker's sum.
async fn own_store(test: &str) -> (Client, Worker, Sum) {
    let (url, sum) = (format!("memory://{test}"), Sum::default());
    let worker = Worker::builder(&url).only_named_tasks().quiet().data(sum.clone());
    let worker = worker.task(add).task(stubborn).task(add_up_to).build();
    (Client::connect(&url).await.unwrap(), worker.unwrap(), sum)
}

async fn ready(client: &Client) -> usize {
    let queue = QueueName::new("sums").unwrap();
    let page = client.inspector().list(&queue, TaskState::Ready, None, 100).await.unwrap();
    page.rows.len()
}

#[tokio::test]
async fn each_number_is_added_once() {
    let (client, worker, sum) = own_store("each_number_is_added_once").await;
    let handles = client.submit_all((1..=100).map(add)).await.unwrap();
    let results = worker.run_until(client.results_in_order(handles)).await.unwrap();
    assert!(results.into_iter().all(|attempt| attempt.unwrap() == 1));
    assert_eq!(sum.0.load(Ordering::Relaxed), 5_050);
}

#[tokio::test]
async fn a_number_is_no_duplicate_of_another_tests() {
    let (client, worker, sum) = own_store("a_number_is_no_duplicate_of_another_tests").await;
    let first = client.submit(add(1)).await.unwrap();
    let again = client.submit(add(1)).await.unwrap();
    assert!(!first.is_duplicate() && again.is_duplicate());
    worker.run_until(again.result()).await.unwrap().unwrap();
    assert_eq!(sum.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_nobody_runs_waits() {
    let (client, _worker, sum) = own_store("what_nobody_runs_waits").await;
    client.submit_all([1, 2, 3].map(add)).await.unwrap();
    assert_eq!((ready(&client).await, sum.0.load(Ordering::Relaxed)), (3, 0));
}

#[tokio::test]
async fn a_retry_need_not_be_waited_for() {
    let (client, worker, _) = own_store("a_retry_need_not_be_waited_for").await;
    let handle = client.submit(stubborn().backoff(MOMENT)).await.unwrap();
    assert_eq!(worker.run_until(handle.result()).await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn a_handler_submits_to_the_store_of_its_test() {
    let (client, worker, sum) = own_store("a_handler_submits_to_the_store_of_its_test").await;
    let handle = client.submit(add_up_to(10)).await.unwrap();
    worker.run_until(handle.result()).await.unwrap().unwrap();
    assert_eq!((ready(&client).await, sum.0.load(Ordering::Relaxed)), (0, 55));
}
