//! Counts the words of every file in a folder. Each file is one task. The client and the worker are
//! in one process.
//!
//! Run `cargo run --example quickstart [folder] [url]`. The default folder is this repository. The
//! default URL is `$OPTIMUS_URL` if it is set, otherwise `memory://`, which needs no server.

use std::{
    collections::HashMap,
    env, fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context as _;
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use indicatif::{ProgressBar, ProgressStyle};
use optimus::{Client, Context, TaskHandle, Worker};
use tokio::task::JoinSet;

/// Counts the words of a file. Returns the count and the number of the attempt that succeeded. A
/// file that is not text may be incomplete because another program still writes it, so the task is
/// tried two more times.
#[optimus::task(biz_id = "{file}", max_retry = 2, backoff = "fixed(wait = 300ms)", timeout = "10s")]
async fn count_words(file: String, ctx: Context) -> io::Result<(usize, u32)> {
    let text = tokio::fs::read_to_string(&file).await;
    let text = text.map_err(|why| io::Error::new(why.kind(), format!("{file}: {why}")))?;
    Ok((text.split_whitespace().count(), ctx.attempt()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut args = env::args().skip(1);
    let folder = args.next().map_or_else(repository, PathBuf::from);
    let url = args.next().or_else(|| {
        let url = env::var("OPTIMUS_URL").ok()?;
        println!("OPTIMUS_URL is set, so the tasks go to that server, in the namespace quickstart");
        Some(url)
    });
    let url = url.unwrap_or_else(|| "memory://quickstart".to_owned());

    // All calls are submitted before the worker starts. So if a link leads to a file a second time,
    // the first task of that file still waits. Calls with one biz id are one task, so their handles
    // have one id.
    let client = Client::builder(&url).namespace("quickstart").connect().await?;
    let files = find_files(&folder, &mut Vec::new());
    let files = files.with_context(|| format!("can't read the folder {}", folder.display()))?;
    let handles = client.submit_all(files.iter().cloned().map(count_words)).await?;
    let tasks: HashMap<_, _> = handles.into_iter().map(|task| (task.id().clone(), task)).collect();
    println!("{} tasks for {} files", tasks.len(), files.len());
    let duplicates = files.len() - tasks.len();

    let worker = Worker::builder(&url).namespace("quickstart").quiet().build()?;
    let tally = worker.run_until(await_all(tasks.into_values())).await??;

    let rows = [
        ["files", &files.len().to_string()],
        ["words", &tally.words.to_string()],
        ["retries", &tally.retries.to_string()],
        ["dead", &tally.dead.len().to_string()],
        ["duplicates by biz id", &duplicates.to_string()],
        ["time", &format!("{:.1} s", begun.elapsed().as_secs_f64())],
    ];
    println!("{}", Table::new().load_style(UTF8_FULL_CONDENSED).add_rows(rows));
    tally.dead.iter().for_each(|why| println!("dead: {why}"));
    Ok(())
}

#[derive(Default)]
struct Tally {
    words: usize,
    retries: u32,
    dead: Vec<String>,
}

/// Waits until every task has ended. Yields the results in the order in which the tasks end.
async fn await_all(tasks: impl Iterator<Item = TaskHandle<(usize, u32)>>) -> anyhow::Result<Tally> {
    let mut results: JoinSet<_> = tasks.map(|task| async move { task.result().await }).collect();
    // Without a terminal, the progress bar draws nothing.
    let bar = ProgressBar::new(results.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos} of {len} tasks")?);
    let mut tally = Tally::default();
    while let Some(result) = results.join_next().await {
        let (words, attempt) = match result? {
            Ok(count) => count,
            Err(problem) => {
                let last = problem.attempt_error().ok_or_else(|| problem.clone())?;
                tally.dead.push(last.message.clone());
                (0, last.attempt)
            }
        };
        tally.words += words;
        tally.retries += attempt - 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(tally)
}

/// Folders that have pictures alone, or files that are not of the repository.
const LEFT_OUT: [&str; 4] = [".git", "target", "node_modules", "docs/console"];

/// Returns the files in a folder and its subfolders, by their real paths. It follows links, except
/// to a parent folder.
fn find_files(folder: &Path, above: &mut Vec<PathBuf>) -> io::Result<Vec<String>> {
    let folder = folder.canonicalize()?;
    if above.contains(&folder) {
        return Ok(Vec::new());
    }
    above.push(folder.clone());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            found.push(path.canonicalize()?.to_string_lossy().into_owned());
        } else if path.is_dir() && !LEFT_OUT.iter().any(|name| path.ends_with(name)) {
            found.extend(find_files(&path, above)?);
        }
    }
    above.pop();
    Ok(found)
}

/// Returns this repository if cargo runs the example, otherwise the current folder.
fn repository() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR");
    package.map_or_else(|| ".".into(), |package| Path::new(&package).join(".."))
}
