//! Sends the coupons of 16 tables, which several workers share as shards. Each coupon is sent once,
//! also if workers are killed or frozen and while the number of shards changes.
//!
//! `cargo run --example coupons -- fill coupons.db 100` makes the tables. Then run
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example coupons -- work coupons.db` two or three
//! times, kill and start workers as you like, and change the number of shards with
//! `OPTIMUS_URL=… cargo run --example coupons -- shards 16`.

use std::{env, time::Duration};

use optimus::{Client, Round, Shard, Worker};
use optimus_sql::{ShardGuard as _, migrate};
use sqlx::{
    AssertSqlSafe, Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

const TABLES: u16 = 16;
const PAGE: usize = 20;
/// A coupon that fails this often is given up.
const ATTEMPTS: u32 = 3;
/// The lease is short, so that the shards of a killed worker are soon taken.
const LEASE: Duration = Duration::from_secs(2);

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Opens the shop's database.
async fn open(file: &str) -> Result<SqlitePool, Failed> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(10));
    Ok(SqlitePool::connect_with(options).await?)
}

/// Runs a statement with a table's number in it.
async fn run(db: &mut Transaction<'_, Sqlite>, sql: String) -> Result<(), Failed> {
    sqlx::query(AssertSqlSafe(sql)).execute(&mut **db).await?;
    Ok(())
}

/// Sends a page of each table of the shard.
#[optimus::sharded(shards = 4, idle = "1s")]
async fn coupons(shard: Shard, #[data] shop: SqlitePool) -> Result<Round, Failed> {
    let aside: Vec<i64> = shard.set_aside().await?;
    let mut found = 0;
    for table in (0..TABLES).filter(|table| table % shard.count() == shard.index()) {
        if shard.is_stopping() {
            return Ok(Round::Again);
        }
        let (sent, failed) = send_page(&shop, &shard, table, &aside).await?;
        found += sent;
        for coupon in failed {
            if shard.failed(coupon).await? >= ATTEMPTS {
                let mut db = shop.begin().await?;
                shard.guard(&mut db).await?;
                run(&mut db, format!("UPDATE coupon_{table} SET status = 2 WHERE id = {coupon}"))
                    .await?;
                db.commit().await?;
            }
        }
    }
    Ok(if found == 0 { Round::Idle } else { Round::Again })
}

/// Sends the next coupons of a table in one transaction. Returns how many there were, and those
/// that failed. The guard refuses it if another worker holds the shard now, or if its tables belong
/// to the shards of a later count.
async fn send_page(
    shop: &SqlitePool,
    shard: &Shard,
    table: u16,
    aside: &[i64],
) -> Result<(usize, Vec<i64>), Failed> {
    let mut db = shop.begin().await?;
    shard.guard(&mut db).await?;
    // Status 1 is sent, 2 is given up.
    let sql = format!("SELECT id FROM coupon_{table} WHERE status = 0 ORDER BY id");
    let open: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *db).await?;
    let page = open.into_iter().filter(|id| !aside.contains(id)).take(PAGE);
    // A coupon whose number ends in 99 has no address.
    let (failed, good): (Vec<i64>, Vec<i64>) = page.partition(|coupon| coupon % 100 == 99);
    for coupon in &good {
        let sent = "INSERT INTO sent (coupon, fence) VALUES (?, ?)";
        let fence = i64::try_from(shard.fence())?;
        sqlx::query(sent).bind(coupon).bind(fence).execute(&mut *db).await?;
        run(&mut db, format!("UPDATE coupon_{table} SET status = 1 WHERE id = {coupon}")).await?;
    }
    db.commit().await?;
    Ok((good.len(), failed))
}

async fn fill(shop: &SqlitePool, rows: i64) -> Result<(), Failed> {
    migrate(shop).await?;
    let mut db = shop.begin().await?;
    run(&mut db, "CREATE TABLE sent (coupon INTEGER, fence INTEGER)".to_owned()).await?;
    for table in 0..TABLES {
        let name = format!("coupon_{table}");
        run(&mut db, format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY, status INTEGER)"))
            .await?;
        let first = i64::from(table) * 1_000_000;
        for id in first..first + rows {
            run(&mut db, format!("INSERT INTO {name} VALUES ({id}, 0)")).await?;
        }
    }
    db.commit().await?;
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
        ["fill", file, rows] => fill(&open(file).await?, rows.parse()?).await,
        ["work", file] => {
            let worker = Worker::from_env()?.data(open(file).await?).lease(LEASE);
            Ok(worker.only_named_tasks().sharded(coupons).run().await?)
        }
        ["shards", count] => set_shards(count.parse()?).await,
        _ => Err("usage: coupons fill <file> <rows> | work <file> | shards <count>".into()),
    }
}
