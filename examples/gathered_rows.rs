//! Writes page views to a database, many in one transaction. A program submits each view by itself;
//! the views of one site that come within a second, or 500 of them, are one run.
//!
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example gathered_rows -- work views.db`, as often as
//! you like; then `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example gathered_rows -- submit 3
//! 10000`: 3 sites with 10,000 views each. Kill a worker (`kill -9 <pid>`) meanwhile.

use std::{
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    time::Duration,
};

use anyhow::{Context as _, bail};
use optimus::{Client, Context, TaskId, Worker};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

/// Short, so that the calls of a killed worker run again soon.
const LEASE: Duration = Duration::from_secs(2);

/// Somebody has seen a page.
#[derive(Debug, Serialize, Deserialize)]
struct View {
    site: u32,
    page: String,
}

/// The user's own database: a file of `SQLite`, opened by each attempt.
#[derive(Clone)]
struct Views(PathBuf);

impl Views {
    /// Writes the rows of a run in one transaction, and returns how many of them are new: a worker
    /// may die after it has written and before it has reported that.
    fn add(&self, ids: &[TaskId], views: &[View]) -> anyhow::Result<usize> {
        let mut connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS view (id TEXT PRIMARY KEY, site INTEGER, page TEXT); \
             CREATE TABLE IF NOT EXISTS run (views INTEGER)",
        )?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut added = 0;
        for (id, View { site, page }) in ids.iter().zip(views) {
            let sql = "INSERT INTO view VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            added += change.execute(sql, params![id.to_string(), site, page])?;
        }
        change.execute("INSERT INTO run VALUES (?1)", [views.len()])?;
        change.commit()?;
        Ok(added)
    }
}

/// A caller writes `count(view)`, with one view. The handler takes the views of a run, and the ids
/// of their calls are in the same order.
#[optimus::task(gather = "1s | 500", by = "{site}", backoff = "fixed(wait = 100ms, jitter = 0)")]
fn count(views: Vec<View>, #[data] database: Views, ctx: Context) -> anyhow::Result<usize> {
    let added = database.add(ctx.calls(), &views)?;
    println!("{}: {} views of site {}, {added} new", process::id(), views.len(), views[0].site);
    Ok(views.len())
}

fn views(sites: u32, views: u32) -> impl Iterator<Item = View> + Send {
    let of_all = move |number| (1..=sites).map(move |site| (site, number));
    let page = |number| format!("/articles/{}", number % 40);
    (0..views).flat_map(of_all).map(move |(site, number)| View { site, page: page(number) })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", file] => {
            tracing_subscriber::fmt().with_ansi(io::stdout().is_terminal()).init();
            let worker = Worker::from_env()?.lease(LEASE).data(Views(file.into())).build()?;
            println!("{} works; end it with Ctrl-C", process::id());
            worker.run().await?;
        }
        ["submit", sites, number] => {
            let url = env::var("OPTIMUS_URL").context("set OPTIMUS_URL")?;
            let client = Client::connect(&url).await?;
            let calls = views(sites.parse()?, number.parse()?).map(count);
            let handles = client.submit_all(calls).await?;
            for handle in &handles {
                handle.result().await?;
            }
            println!("{} views are counted", handles.len());
        }
        _ => bail!("run it with `work <file>` or `submit <sites> <views>`"),
    }
    Ok(())
}
