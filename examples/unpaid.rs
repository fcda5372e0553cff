//! Charges the unpaid orders of 16 tables. Rows of a database are the tasks: a source finds them a
//! page at a time, and a failure is stored in the row, which is then looked for more rarely.
//!
//! `cargo run --example unpaid -- fill shop.db 100` makes the tables. Then run
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example unpaid -- work shop.db` two or three times,
//! and kill and start workers as you like. `… -- scan shop.db` is a worker that only reads pages,
//! `… -- run shop.db` one that only runs tasks, and `… -- look` shows what the source does.
#![allow(
    clippy::unused_async,
    clippy::needless_pass_by_value,
    reason = "a worker calls these functions, and rusqlite has no async calls"
)]

use std::{env, path::PathBuf, time::Duration};

use optimus::{Archive, Client, Found, Page, Row, Worker};
use rusqlite::{Connection, OptionalExtension as _, params};

const TABLES: [&str; 16] = [
    "orders_0",
    "orders_1",
    "orders_2",
    "orders_3",
    "orders_4",
    "orders_5",
    "orders_6",
    "orders_7",
    "orders_8",
    "orders_9",
    "orders_10",
    "orders_11",
    "orders_12",
    "orders_13",
    "orders_14",
    "orders_15",
];
/// The lease is short, so that the slices of a killed worker are soon taken.
const LEASE: Duration = Duration::from_secs(2);

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The shop's database: an `SQLite` file.
#[derive(Clone)]
struct Shop(PathBuf);

impl Shop {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        // Otherwise each commit waits several times for the disk.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(connection)
    }
}

/// Reads a page of the orders of one table that are not paid: status 0. Status 1 is paid.
#[optimus::source(
    every = "500ms", demote(1..=2 = "1s", 3.. = "2s"), attempts = 4, over = TABLES, slices = 4,
    before = still_due, on_failure = bump, archive(after = "30d", with = archive_paid)
)]
async fn unpaid(page: Page<i64>, #[data] shop: Shop) -> Result<Vec<Found<i64>>, Failed> {
    let sql = format!(
        "SELECT id, failures FROM {} WHERE status = 0 AND id > ?1 AND failures BETWEEN ?2 AND ?3 \
         ORDER BY id LIMIT ?4",
        page.table()
    );
    let (after, failures) = (page.after().copied().unwrap_or(-1), page.failures());
    let db = shop.open()?;
    let mut query = db.prepare(&sql)?;
    let values = params![after, failures.start(), failures.end(), page.limit()];
    let rows = query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows = rows.collect::<Result<Vec<(i64, u32)>, _>>()?;
    let found = |(id, failures)| {
        Found::new(id).failures(failures).task(charge(page.table().to_owned(), id))
    };
    Ok(rows.into_iter().map(found).collect())
}

/// Returns how often the order has failed, or `None` if it is paid.
async fn still_due(row: Row<i64>) -> Result<Option<u32>, Failed> {
    let db = row.data::<Shop>()?.open()?;
    let sql = format!("SELECT failures FROM {} WHERE id = ?1 AND status = 0", row.table());
    Ok(db.query_row(&sql, [row.key()], |row| row.get(0)).optional()?)
}

/// Counts a failure of an order.
async fn bump(row: Row<i64>) -> Result<(), Failed> {
    let sql = format!(
        "UPDATE {} SET failures = failures + 1, error = ?2 WHERE id = ?1 AND status = 0",
        row.table()
    );
    row.data::<Shop>()?.open()?.execute(&sql, params![row.key(), row.error()])?;
    Ok(())
}

/// Charges one order. An order whose number ends in 99 has no card.
#[optimus::task(queue = "orders")]
async fn charge(table: String, order: i64, #[data] shop: Shop) -> Result<(), Failed> {
    if order % 100 == 99 {
        return Err("the order has no card".into());
    }
    let mut db = shop.open()?;
    let db = db.transaction()?;
    let paid = format!(
        "UPDATE {table} SET status = 1, paid_at = unixepoch() WHERE id = ?1 AND status = 0"
    );
    if db.execute(&paid, [order])? == 1 {
        db.execute("INSERT INTO payment (tbl, id) VALUES (?1, ?2)", params![table, order])?;
    }
    Ok(db.commit()?)
}

/// Moves orders that were paid long ago, some at a time.
async fn archive_paid(old: Archive) -> Result<u64, Failed> {
    let mut db = old.data::<Shop>()?.open()?;
    let db = db.transaction()?;
    let rows = format!(
        "FROM {} WHERE id IN (SELECT id FROM {} WHERE status = 1 AND paid_at < ?1 LIMIT ?2)",
        old.table(),
        old.table()
    );
    let values = params![old.before().timestamp(), old.limit()];
    db.execute(
        &format!("INSERT INTO old_order SELECT ?3, id {rows}"),
        params![old.before().timestamp(), old.limit(), old.table()],
    )?;
    let moved = db.execute(&format!("DELETE {rows}"), values)?;
    db.commit()?;
    Ok(u64::try_from(moved)?)
}

fn fill(shop: &Shop, rows: i64) -> Result<(), Failed> {
    let mut db = shop.open()?;
    let db = db.transaction()?;
    db.execute_batch(
        "CREATE TABLE payment (tbl TEXT, id INTEGER);
         CREATE TABLE old_order (tbl TEXT, id INTEGER)",
    )?;
    for table in TABLES {
        db.execute_batch(&format!(
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, status INTEGER DEFAULT 0, \
             failures INTEGER DEFAULT 0, error TEXT, paid_at INTEGER);
             CREATE INDEX {table}_unpaid ON {table} (id) WHERE status = 0"
        ))?;
        for id in 0..rows {
            db.execute(&format!("INSERT INTO {table} (id) VALUES (?1)"), [id])?;
        }
    }
    // An order of last year.
    db.execute("INSERT INTO orders_7 (id, status, paid_at) VALUES (1000000, 1, 0)", ())?;
    Ok(db.commit()?)
}

async fn look() -> Result<(), Failed> {
    let client = Client::from_env()?.connect().await?;
    let seen = client.source("unpaid").look().await?;
    for slice in seen.slices {
        let (holder, scans) = (slice.holder.map(|holder| holder.host), slice.scans);
        println!(
            "slice {} on {holder:?}: {} rows read, {} tasks, {} given up, {} archived {}",
            slice.index, scans.rows, scans.submitted, scans.given_up, scans.archived, scans.error
        );
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    tracing_subscriber::fmt().init();
    let args: Vec<String> = env::args().skip(1).collect();
    let worker = |file: &str| -> Result<_, Failed> {
        let worker = Worker::from_env()?.data(Shop(file.into())).lease(LEASE);
        Ok(worker.only_named_tasks())
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fill", file, rows] => fill(&Shop(file.into()), rows.parse()?),
        ["work", file] => Ok(worker(file)?.source(unpaid).task(charge).run().await?),
        ["scan", file] => Ok(worker(file)?.source(unpaid).run().await?),
        ["run", file] => Ok(worker(file)?.task(charge).run().await?),
        ["look"] => look().await,
        _ => Err("usage: unpaid fill <file> <rows> | work|scan|run <file> | look".into()),
    }
}
