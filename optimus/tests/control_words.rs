//! Control words in handlers whose error type is `anyhow::Error`, `eyre::Report` or a box.

use std::sync::atomic::{AtomicU32, Ordering};

use optimus::{BoxError, Cancel, Client, Fatal, Worker};

/// The number of runs of each task, by the index of its error type.
static RUNS: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];

fn begun(index: usize) {
    RUNS[index].fetch_add(1, Ordering::SeqCst);
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn asked() -> anyhow::Result<()> {
    begun(0);
    Err(Fatal::new("hopeless"))?
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn bailed() -> anyhow::Result<()> {
    begun(1);
    anyhow::bail!(Fatal::new("hopeless"))
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn explained() -> anyhow::Result<()> {
    use anyhow::Context as _;
    begun(2);
    "no number".parse::<u32>().context(Fatal::new("hopeless")).context("above")?;
    Ok(())
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn reported() -> eyre::Result<()> {
    begun(3);
    Err(Fatal::new("hopeless"))?
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn boxed() -> Result<(), BoxError> {
    begun(4);
    Err(Fatal::new("hopeless"))?
}

#[optimus::task(max_retry = 2, backoff = "fixed(wait = 1ms)")]
async fn unwanted() -> anyhow::Result<()> {
    begun(5);
    Err(Cancel.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_word_works_with_any_error_type_of_a_handler() {
    let url = "memory://control_words";
    let client = Client::connect(url).await.unwrap();
    let calls = [
        asked().erase(),
        bailed().erase(),
        explained().erase(),
        reported().erase(),
        boxed().erase(),
        unwanted().erase(),
    ];
    let handles = client.submit_all(calls.map(Result::unwrap)).await.unwrap();
    let worker = Worker::builder(url).quiet().build().unwrap();
    let all_ended = async {
        for (index, handle) in handles.iter().enumerate() {
            let problem = handle.result().await.unwrap_err();
            assert_eq!(problem.is_cancelled(), index == 5, "index {index}: {problem}");
            assert!(index == 5 || problem.is_dead(), "index {index}: {problem}");
        }
    };
    worker.run_until(all_ended).await.unwrap();
    for (index, runs) in RUNS.iter().enumerate() {
        assert_eq!(runs.load(Ordering::SeqCst), 1, "index {index} ran once");
    }
}
