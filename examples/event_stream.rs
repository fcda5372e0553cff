//! Applies the events of each user to a database in the order in which they were submitted, on any
//! number of workers. Each user has a lane, so users do not wait for each other.
//!
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example event_stream -- work accounts.db`, as often
//! as you like; then `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example event_stream -- submit 20
//! 50`: 20 users with 50 events each. Kill a worker (`kill -9 <pid>`) or start another one
//! meanwhile.

use std::{
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    time::Duration,
};

use anyhow::{Context as _, bail};
use optimus::{Client, Context, Worker};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

/// Short, so that the lanes of a killed worker go on soon.
const LEASE: Duration = Duration::from_secs(2);

/// Something that happened to a user's account.
#[derive(Debug, Serialize, Deserialize)]
struct Event {
    user: u32,
    /// From 1, without gaps, as the source counts them.
    number: u32,
    /// Above zero for a deposit. A withdrawal never takes more than the deposits before it.
    cents: i64,
}

/// The user's own database: a file of `SQLite`, opened by each attempt.
#[derive(Clone)]
struct Accounts(PathBuf);

impl Accounts {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute(
            "CREATE TABLE IF NOT EXISTS account \
             (user INTEGER PRIMARY KEY, last INTEGER, cents INTEGER CHECK (cents >= 0))",
            (),
        )?;
        Ok(connection)
    }

    /// Applies an event. `false` if it was applied before: a worker may die after it has written
    /// and before it has reported that.
    fn apply(&self, event: &Event) -> anyhow::Result<bool> {
        let mut connection = self.open()?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT last FROM account WHERE user = ?1";
        let last: Option<u32> = change.query_row(sql, [event.user], |row| row.get(0)).optional()?;
        let last = last.unwrap_or(0);
        if event.number <= last {
            return Ok(false);
        }
        if event.number != last + 1 {
            bail!("event {} of user {} comes after {last}", event.number, event.user);
        }
        let sql = "INSERT INTO account VALUES (?1, 0, 0) ON CONFLICT DO NOTHING";
        change.execute(sql, [event.user])?;
        let sql = "UPDATE account SET last = ?2, cents = cents + ?3 WHERE user = ?1";
        change.execute(sql, params![event.user, event.number, event.cents])?;
        change.commit()?;
        Ok(true)
    }
}

/// Applies one event. A failed attempt keeps the lane of its user until the next attempt.
#[optimus::task(
    lane = "user-{event.user}",
    on_lane_failure = "block",
    backoff = "fixed(wait = 100ms, jitter = 0)"
)]
fn apply(event: Event, #[data] accounts: Accounts, ctx: Context) -> anyhow::Result<()> {
    if event.number % 20 == 7 && ctx.attempt() == 1 {
        bail!("the bank is away");
    }
    let (lane, is_new) = (ctx.lane().unwrap_or_default(), accounts.apply(&event)?);
    let done = if is_new { "applied" } else { "was applied before" };
    println!("{}: {lane}: event {} {done}", process::id(), event.number);
    Ok(())
}

/// Each deposit of 10 is followed by a withdrawal of 9, so a wrong order overdraws the account.
fn events(users: u32, events: u32) -> impl Iterator<Item = Event> {
    let cents = |number| if number % 2 == 1 { 10 } else { -9 };
    let of_all = move |number| (1..=users).map(move |user| (user, number));
    (1..=events).flat_map(of_all).map(move |(user, number)| Event {
        user,
        number,
        cents: cents(number),
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", file] => {
            tracing_subscriber::fmt().with_ansi(io::stdout().is_terminal()).init();
            let worker = Worker::from_env()?.lease(LEASE).data(Accounts(file.into())).build()?;
            println!("{} works; end it with Ctrl-C", process::id());
            worker.run().await?;
        }
        ["submit", users, count] => {
            let url = env::var("OPTIMUS_URL").context("set OPTIMUS_URL")?;
            let client = Client::connect(&url).await?;
            let calls = events(users.parse()?, count.parse()?).map(apply);
            for handle in client.submit_all(calls).await? {
                handle.result().await?;
            }
            println!("all events are applied");
        }
        _ => bail!("run it with `work <file>` or `submit <users> <events>`"),
    }
    Ok(())
}
