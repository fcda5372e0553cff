//! Shows what a worker logs. One task ends with each outcome, on `memory://`.
//!
//! `cargo run --example logs` logs at `info`. `-- warn` sets another filter, and `-- --json` logs
//! JSON.

use std::{
    env,
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use optimus::{Cancel, Client, Context, Fatal, Retry, Snooze, Worker};
use tokio::sync::Notify;
use tracing::{info, warn};

const URL: &str = "memory://logs";
const MINUTE: Duration = Duration::from_secs(60);

/// Charges an order. The order's number determines how the attempt ends.
#[optimus::task(max_retry = 1, timeout = "500ms", backoff = "fixed(wait = 30s)")]
async fn charge(order: u32, #[data] begun: Arc<Notify>, ctx: Context) -> anyhow::Result<()> {
    match order {
        1 => info!(order, "charged"),
        2 => Err(io::Error::other("connection refused")).context("the bank")?,
        3 => Err(Fatal::new("the card was stolen"))?,
        4 => Err(Retry::after(MINUTE).because("the bank is closed"))?,
        5 => Err(Snooze::new(MINUTE))?,
        6 => Err(Cancel)?,
        7 => panic!("the amount is below zero"),
        8 => tokio::time::sleep(MINUTE).await,
        _ => {
            warn!(order, "the bank is slow");
            begun.notify_one();
            ctx.cancelled().await;
            anyhow::bail!("the worker asked it to stop");
        }
    }
    Ok(())
}

/// Submits the orders, and returns while the last one runs.
async fn submit_all(begun: &Notify) -> optimus::Result<()> {
    for order in 1..=8 {
        charge(order).perform_async().await?;
    }
    charge(9).timeout(MINUTE).perform_async().await?;
    begun.notified().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> optimus::Result<()> {
    let (json, filter): (Vec<_>, Vec<_>) = env::args().skip(1).partition(|arg| arg == "--json");
    let filter = filter.first().map_or("info", String::as_str);
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    if json.is_empty() {
        log.with_ansi(io::stdout().is_terminal()).init();
    } else {
        log.json().flatten_event(true).with_current_span(false).init();
    }

    Client::connect(URL).await?.install();
    let begun = Arc::new(Notify::new());
    // With one slot, the orders run one after another.
    let worker = Worker::builder(URL).quiet().concurrency(1).data(begun.clone());
    // The worker interrupts the last order at once.
    let worker = worker.shutdown_grace(Duration::ZERO).build()?;
    worker.run_until(submit_all(&begun)).await?
}
