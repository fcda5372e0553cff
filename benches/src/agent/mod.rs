//! The processes that submit and run tasks. The harness starts this program again for each agent,
//! so that each agent has its own processor time and memory.
//!
//! An agent reads one order per line from standard input and writes one reply per line to standard
//! output, both as JSON. An agent ends when its input ends, so it also ends with the harness.

pub(crate) mod protocol;
mod return_one;
mod submitter;
mod tally;
mod tasks;
mod worker;

use std::io::{BufRead as _, Write as _};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use protocol::Reply;

/// The number of threads of an agent. Redis uses the other core of the machine of the published
/// figures.
const RUNTIME_THREADS: usize = 1;

/// How long an agent continues an order after the harness has ended.
const LAST_ORDER_WITHIN: Duration = Duration::from_secs(5);

/// Runs one role until the input ends: `submit <url>` or `work <settings>`.
///
/// # Errors
///
/// When the role is unknown, or the agent can't start. Later errors are sent as replies.
pub(crate) fn serve(args: &[String]) -> anyhow::Result<()> {
    match args {
        [role, url] if role == "submit" => submitter::serve(url),
        [role, settings] if role == "work" => worker::serve(&serde_json::from_str(settings)?),
        _ => bail!("an agent is `submit <url>` or `work <settings>`; the harness starts it"),
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(RUNTIME_THREADS).enable_all().build().context("no runtime")
}

/// Replies to each order with the result of `obey`.
fn obey_each<O: DeserializeOwned>(
    mut obey: impl FnMut(O) -> anyhow::Result<Reply>,
) -> anyhow::Result<()> {
    let orders = read_orders();
    say(&Reply::Ready)?;
    for line in orders {
        let order = serde_json::from_str(&line)?;
        say(&obey(order).unwrap_or_else(|error| Reply::Failed(format!("{error:#}"))))?;
    }
    Ok(())
}

/// Reads on a separate thread, which notices the end of the input even during an order.
fn read_orders() -> Receiver<String> {
    let (sender, orders) = mpsc::channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        drop(sender);
        thread::sleep(LAST_ORDER_WITHIN);
        std::process::exit(1);
    });
    orders
}

fn say(reply: &Reply) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer(&mut stdout, reply)?;
    stdout.write_all(b"\n")?;
    Ok(stdout.flush()?)
}
