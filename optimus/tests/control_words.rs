//! Control words in handlers whose error is `anyhow::Error`, `eyre::Report` or a box.

use std::sync::atomic::{AtomicU32, Ordering};

use optimus::{BoxError, Cancel, Client, Fatal, Worker};

/// The runs of each task by its `way`.
static RUNS: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];

fn begun(way: usize) {
    RUNS[way].fetch_add(1, Ordering::SeqCst);
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
async fn a_control_word_of_a_handler_is_obeyed_whatever_its_error_type_is() {
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
        for (way, handle) in handles.iter().enumerate() {
            let problem = handle.result().await.unwrap_err();
            assert_eq!(problem.is_cancelled(), way == 5, "way {way}: {problem}");
            assert!(way == 5 || problem.is_dead(), "way {way}: {problem}");
        }
    };
    worker.run_until(all_ended).await.unwrap();
    for (way, runs) in RUNS.iter().enumerate() {
        assert_eq!(runs.load(Ordering::SeqCst), 1, "way {way} ran once");
    }
}
