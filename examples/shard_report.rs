//! A report over 1,000 shards with a callback. Each shard is a file of sales. A task for each shard
//! counts them, and one task after all of them writes the report.
//!
//! `cargo run --example shard_report` runs it in memory;
//! `cargo run --example shard_report -- 1000 redis://127.0.0.1/` on a Redis.

use std::{collections::BTreeMap, env, fs, path::PathBuf, time::Duration};

use anyhow::Context as _;
use optimus::{Client, Flow, GroupResults, MemberEnd, StepHandle, Worker, group};
use serde::{Deserialize, Serialize};

/// The sales of a shard or of all shards, in cents, by country.
type Sales = BTreeMap<String, u64>;

/// What the callback returns.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    shards: u32,
    sales: Sales,
    /// The shards whose file can't be read.
    unreadable: Vec<u32>,
}

/// Adds up one file, which has a country and an amount in each line.
#[optimus::task(queue = "shards", max_retry = 0)]
fn count_shard(file: PathBuf) -> anyhow::Result<Sales> {
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let mut sales = Sales::new();
    for line in text.lines() {
        let (country, cents) = line.split_once(',').context("a line without a comma")?;
        *sales.entry(country.to_owned()).or_default() += cents.parse::<u64>()?;
    }
    Ok(sales)
}

/// Runs after the last shard. It reads the results a thousand at a time.
#[optimus::task(queue = "reports")]
async fn write_report(shards: GroupResults<Sales>) -> anyhow::Result<Report> {
    let mut report = Report { shards: shards.total(), sales: Sales::new(), unreadable: Vec::new() };
    let mut ends = shards.read();
    while let Some((shard, end)) = ends.next().await? {
        match end {
            MemberEnd::Success(sales) => {
                for (country, cents) in sales {
                    *report.sales.entry(country).or_default() += cents;
                }
            }
            MemberEnd::Failed(_) => report.unreadable.push(shard),
        }
    }
    Ok(report)
}

/// Writes the files: shard n sells n cents in each of three countries. The last file is missing.
fn write_shards(folder: &std::path::Path, count: u32) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for shard in 0..count {
        let file = folder.join(format!("{shard}.csv"));
        if shard + 1 < count {
            fs::write(&file, format!("DE,{shard}\nFR,{shard}\nPT,{shard}\n"))?;
        }
        files.push(file);
    }
    Ok(files)
}

/// The tasks: a group of all shards, which continues without those that fail, and its callback.
fn report_on(files: Vec<PathBuf>) -> Flow<'static, Report> {
    let shards = group(files.into_iter().map(count_shard));
    shards.on_member_failure(optimus::PrerequisiteFailure::Run).then(write_report)
}

async fn run(client: &Client, files: Vec<PathBuf>) -> anyhow::Result<()> {
    let handle = client.submit_flow(report_on(files)).await?;
    let StepHandle::Group(shards) = &handle.steps()[0] else { unreachable!("it is a group") };
    let mut progress = shards.progress().await?;
    while progress.ended.is_none() {
        println!("{} of {} shards are counted", progress.done, progress.total);
        tokio::time::sleep(Duration::from_millis(100)).await;
        progress = shards.progress().await?;
    }
    let report = handle.result().await?;
    println!("{} shards, {} of them unreadable", report.shards, report.unreadable.len());
    for (country, cents) in &report.sales {
        println!("{country}: {cents} cents");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = env::args().skip(1);
    let count = args.next().map_or(Ok(1000), |count| {
        count.parse::<u32>().context("run it with the number of shards")
    })?;
    let url = args.next().unwrap_or_else(|| "memory://shards".to_owned());
    let folder = tempfile::tempdir()?;
    let files = write_shards(folder.path(), count)?;

    let client = Client::connect(&url).await?;
    let worker = Worker::builder(&url).quiet().build()?;
    worker.run_until(run(&client, files)).await?
}
