//! Keeps a frozen worker out of your own database. When a frozen worker wakes up, its lease may be
//! over, but its attempt can still write. The database must refuse that write.
//!
//! Run `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example fenced -- work reports.db` twice, then
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example fenced -- submit`. Freeze the worker that
//! begins the report (`kill -STOP <pid>`), wait until the other one has written it, and wake the
//! first one (`kill -CONT <pid>`).

use std::{
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    process, thread,
    time::Duration,
};

use anyhow::Context as _;
use optimus::{Client, Context, Worker};
use rusqlite::{Connection, params};

/// The time that it takes to build a report.
const WORK: Duration = Duration::from_secs(2);
/// The lease is short, so that the second attempt begins soon.
const LEASE: Duration = Duration::from_secs(2);

/// The user's own database: an `SQLite` file, which each attempt opens.
#[derive(Clone)]
struct Reports(PathBuf);

impl Reports {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute(
            "CREATE TABLE IF NOT EXISTS report (name TEXT PRIMARY KEY, text TEXT, fence INTEGER)",
            (),
        )?;
        Ok(connection)
    }

    /// Takes the row for an attempt. Each attempt has a larger fence than the attempts before it,
    /// so no earlier attempt can write afterwards. Returns `false` if a later attempt has the row.
    fn take(&self, name: &str, fence: i64) -> rusqlite::Result<bool> {
        let sql = "INSERT INTO report (name, fence) VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET fence = ?2 WHERE fence <= ?2";
        Ok(self.open()?.execute(sql, params![name, fence])? == 1)
    }

    /// Writes the text for the attempt that has the row. Returns `false` if another attempt has the
    /// row.
    fn write(&self, name: &str, fence: i64, text: &str) -> rusqlite::Result<bool> {
        let sql = "UPDATE report SET text = ?3 WHERE name = ?1 AND fence = ?2";
        Ok(self.open()?.execute(sql, params![name, fence, text])? == 1)
    }
}

/// Builds a report. The function is not `async`, like most code that can't be stopped in the
/// middle.
#[optimus::task]
fn report(name: String, #[data] reports: Reports, ctx: Context) -> anyhow::Result<()> {
    let (attempt, me) = (ctx.attempt(), process::id());
    let fence = i64::try_from(ctx.fence())?;
    if !reports.take(&name, fence)? {
        println!("{me}: the database refused attempt {attempt} at its start");
        return Ok(());
    }
    println!("{me}: attempt {attempt} of {name} begins");
    thread::sleep(WORK);
    if reports.write(&name, fence, &format!("written by attempt {attempt}"))? {
        println!("{me}: attempt {attempt} has written {name}");
    } else {
        println!("{me}: attempt {attempt} is refused, a later one has {name}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", file] => {
            tracing_subscriber::fmt().with_ansi(io::stdout().is_terminal()).init();
            let worker = Worker::from_env()?.lease(LEASE).data(Reports(file.into())).build()?;
            println!("{} works; end it with Ctrl-C", process::id());
            worker.run().await?;
        }
        ["submit"] => {
            let url = env::var("OPTIMUS_URL").context("set OPTIMUS_URL")?;
            Client::connect(&url).await?.install();
            report("may".into()).perform_async().await?.result().await?;
            println!("the report of may is done");
        }
        _ => anyhow::bail!("run it with `work <file>` or `submit`"),
    }
    Ok(())
}
