//! Reserves, bills and ships each order, in this order, although three systems trigger the three
//! steps without knowing of each other, in any order.
//!
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example order_flow -- work orders.db`, as often as
//! you like; then `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example order_flow -- trigger 100`:
//! 100 orders. Kill a worker (`kill -9 <pid>`) or start another one meanwhile.

use std::{
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    time::Duration,
};

use anyhow::{Context as _, bail};
use optimus::{Client, Worker};
use rusqlite::Connection;

/// Short, so that the tasks of a killed worker run again soon.
const LEASE: Duration = Duration::from_secs(2);

/// The shop's own database: a file of `SQLite`, opened by each attempt.
#[derive(Clone)]
struct Orders(PathBuf);

impl Orders {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute(
            "CREATE TABLE IF NOT EXISTS step \
             (number INTEGER PRIMARY KEY, what TEXT, shop_order TEXT, UNIQUE (what, shop_order))",
            (),
        )?;
        Ok(connection)
    }

    /// Writes a step down. A repeated attempt changes nothing.
    fn note(&self, what: &str, order: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO step (what, shop_order) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.open()?.execute(sql, [what, order])?;
        println!("{}: {what} {order}", process::id());
        Ok(())
    }
}

/// Takes the goods from the shelf. The warehouse triggers it.
#[optimus::task(queue = "stock", biz_id = "{order}", outcome_ttl = "7d")]
fn reserve(order: String, #[data] orders: Orders) -> anyhow::Result<()> {
    Ok(orders.note("reserved", &order)?)
}

/// Charges the customer. The bank triggers it.
#[optimus::task(queue = "money", biz_id = "{order}", after = reserve, outcome_ttl = "7d")]
fn bill(order: String, #[data] orders: Orders) -> anyhow::Result<()> {
    Ok(orders.note("billed", &order)?)
}

/// Sends the parcel. The carrier triggers it, as soon as its van is at the door. An order that
/// nobody has reserved and billed by the evening is not shipped.
#[optimus::task(
    queue = "parcels",
    biz_id = "{order}",
    after = [reserve, bill],
    on_prerequisite_failure = "cancel",
    give_up_after = "12h"
)]
fn ship(order: String, #[data] orders: Orders) -> anyhow::Result<String> {
    orders.note("shipped", &order)?;
    Ok(format!("parcel of {order}"))
}

/// The three systems: each knows only its own step, and each has its own order of the orders.
async fn trigger(client: &Client, count: usize) -> anyhow::Result<()> {
    let order = |number: usize| format!("o-{number}");
    let odd_first = (1..count).step_by(2).chain((0..count).step_by(2));
    let warehouse = client.submit_all(odd_first.map(|n| reserve(order(n))));
    let bank = client.submit_all((0..count).rev().map(|n| bill(order(n))));
    let carrier = client.submit_all((0..count).map(|n| ship(order(n))));
    let (parcels, billed, reserved) = tokio::join!(carrier, bank, warehouse);
    reserved?;
    billed?;
    for parcel in parcels? {
        parcel.result().await?;
    }
    println!("all orders are shipped");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", file] => {
            tracing_subscriber::fmt().with_ansi(io::stdout().is_terminal()).init();
            let worker = Worker::from_env()?.lease(LEASE).data(Orders(file.into())).build()?;
            println!("{} works; end it with Ctrl-C", process::id());
            worker.run().await?;
        }
        ["trigger", count] => {
            let url = env::var("OPTIMUS_URL").context("set OPTIMUS_URL")?;
            trigger(&Client::connect(&url).await?, count.parse()?).await?;
        }
        _ => bail!("run it with `work <file>` or `trigger <orders>`"),
    }
    Ok(())
}
