//! Sends the coupons of 16 tables, which several workers share as shards. Each coupon is sent once,
//! also if workers are killed or frozen and while the number of shards changes.
//!
//! `cargo run --example coupons -- fill coupons.db 100` makes the tables. Then run
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example coupons -- work coupons.db` two or three
//! times, kill and start workers as you like, and change the number of shards with
//! `OPTIMUS_URL=… cargo run --example coupons -- shards 16`.

use std::{env, path::PathBuf, process, time::Duration};

use optimus::{Client, Round, Shard, Worker};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

const TABLES: u16 = 16;
const PAGE: usize = 20;
/// A coupon that fails this often is given up.
const ATTEMPTS: u32 = 3;
/// The lease is short, so that the shards of a killed worker are soon taken.
const LEASE: Duration = Duration::from_secs(2);

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The shop's database: an `SQLite` file.
#[derive(Clone)]
struct Shop(PathBuf);

impl Shop {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Ok(connection)
    }
}

/// The coupons of one table that are not sent: status 0. Status 1 is sent, 2 is given up.
fn open_coupons(db: &Transaction<'_>, table: u16, aside: &[i64]) -> rusqlite::Result<Vec<i64>> {
    let sql = format!("SELECT id FROM coupon_{table} WHERE status = 0 ORDER BY id");
    let mut rows = db.prepare(&sql)?;
    let ids = rows.query_map((), |row| row.get(0))?;
    let ids = ids.filter(|id| !matches!(id, Ok(id) if aside.contains(id)));
    ids.take(PAGE).collect()
}

/// Refuses the transaction of a worker that no longer holds the shard. The first statement keeps
/// out earlier holders of this shard. The second one keeps out all shards of an earlier number of
/// shards.
fn guard(db: &Transaction<'_>, shard: &Shard) -> Result<(), Failed> {
    let (fence, generation) = (i64::try_from(shard.fence())?, i64::try_from(shard.generation())?);
    for (name, fence) in
        [(format!("coupons/{}", shard.index()), fence), ("coupons".into(), generation)]
    {
        let sql = "INSERT INTO fence (name, fence) VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET fence = ?2 WHERE fence <= ?2";
        if db.execute(sql, params![name, fence])? == 0 {
            return Err(format!("{name} has a later holder").into());
        }
    }
    Ok(())
}

/// Sends a page of each table of the shard.
#[optimus::sharded(shards = 4, idle = "1s")]
async fn coupons(shard: Shard, #[data] shop: Shop) -> Result<Round, Failed> {
    let aside: Vec<i64> = shard.set_aside().await?;
    let mut found = 0;
    for table in (0..TABLES).filter(|table| table % shard.count() == shard.index()) {
        if shard.is_stopping() {
            return Ok(Round::Again);
        }
        let failed = send_page(&shop, &shard, table, &aside)?;
        found += failed.0;
        for coupon in failed.1 {
            if shard.failed(coupon).await? >= ATTEMPTS {
                let mut db = shop.open()?;
                let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
                guard(&db, &shard)?;
                let sql = format!("UPDATE coupon_{table} SET status = 2 WHERE id = ?1");
                db.execute(&sql, [coupon])?;
                db.commit()?;
            }
        }
    }
    Ok(if found == 0 { Round::Idle } else { Round::Again })
}

/// Sends the next coupons of a table in one transaction. Returns how many there were, and those
/// that failed.
fn send_page(
    shop: &Shop,
    shard: &Shard,
    table: u16,
    aside: &[i64],
) -> Result<(usize, Vec<i64>), Failed> {
    let mut db = shop.open()?;
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    guard(&db, shard)?;
    let page = open_coupons(&db, table, aside)?;
    let mut failed = Vec::new();
    for &coupon in &page {
        // A coupon whose number ends in 99 has no address.
        if coupon % 100 == 99 {
            failed.push(coupon);
            continue;
        }
        let sent = "INSERT INTO sent (coupon, worker, fence) VALUES (?1, ?2, ?3)";
        db.execute(sent, params![coupon, process::id(), i64::try_from(shard.fence())?])?;
        db.execute(&format!("UPDATE coupon_{table} SET status = 1 WHERE id = ?1"), [coupon])?;
    }
    db.commit()?;
    Ok((page.len() - failed.len(), failed))
}

fn fill(shop: &Shop, rows: i64) -> Result<(), Failed> {
    let mut db = shop.open()?;
    let db = db.transaction()?;
    db.execute_batch(
        "CREATE TABLE fence (name TEXT PRIMARY KEY, fence INTEGER);
         CREATE TABLE sent (coupon INTEGER, worker INTEGER, fence INTEGER)",
    )?;
    for table in 0..TABLES {
        let name = format!("coupon_{table}");
        db.execute(&format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY, status INTEGER)"), ())?;
        let first = i64::from(table) * 1_000_000;
        for id in first..first + rows {
            db.execute(&format!("INSERT INTO {name} VALUES (?1, 0)"), [id])?;
        }
    }
    db.commit()?;
    Ok(())
}

async fn set_shards(count: u16) -> Result<(), Failed> {
    let client = Client::from_env()?.connect().await?;
    let before = client.shards("coupons").set_count(count).await?;
    println!("{count} shards, {before} before");
    for worker in client.shards("coupons").look().await?.workers {
        println!("{} on {} holds {}", worker.worker, worker.description.host, worker.holds);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    tracing_subscriber::fmt().init();
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fill", file, rows] => fill(&Shop(file.into()), rows.parse()?),
        ["work", file] => {
            let worker = Worker::from_env()?.data(Shop(file.into())).lease(LEASE);
            Ok(worker.only_named_tasks().sharded(coupons).run().await?)
        }
        ["shards", count] => set_shards(count.parse()?).await,
        _ => Err("usage: coupons fill <file> <rows> | work <file> | shards <count>".into()),
    }
}
