//! An order service. The row of an order and the task that begins its work are committed together,
//! and each step changes the database exactly once, whatever is killed.
//!
//! Run `cargo run --example orders`; it needs no server. With
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example orders -- orders.db` it uses a Redis and
//! keeps its database: kill it at any moment and start it again.

use std::{env, time::Duration};

use anyhow::Context as _;
use optimus::{Client, Context, Worker};
use optimus_sql::{Once as _, Outbox as _, PerformInTx as _, lag, migrate, transaction};
use sqlx::{
    Row as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// How many orders the program takes.
const ORDERS: i64 = 20;
/// How many items are in stock at first; too few for all orders.
const STOCK: i64 = 15;

/// The lease is short, so that the tasks of a killed program begin again soon.
const LEASE: Duration = Duration::from_secs(2);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, count INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS payments (order_id INTEGER NOT NULL, cents INTEGER NOT NULL);
";

/// Takes an item from the stock, and goes on with the payment.
#[optimus::task]
async fn reserve(order: i64, #[data] pool: SqlitePool, ctx: Context) -> anyhow::Result<()> {
    ctx.once(&pool, async |mut tx| {
        let take = "UPDATE stock SET count = count - 1 WHERE item = 'book' AND count > 0";
        let taken = sqlx::query(take).execute(&mut **tx).await?.rows_affected() == 1;
        let state = if taken { "reserved" } else { "sold out" };
        set_state(&mut tx, order, state).await?;
        if taken {
            pay(order).perform_in_tx(&mut tx).await?;
        }
        anyhow::Ok(())
    })
    .await
}

/// Notes the payment, and goes on with the parcel.
#[optimus::task]
async fn pay(order: i64, #[data] pool: SqlitePool, ctx: Context) -> anyhow::Result<()> {
    ctx.once(&pool, async |mut tx| {
        let note = "INSERT INTO payments VALUES (?, 1999)";
        sqlx::query(note).bind(order).execute(&mut **tx).await?;
        set_state(&mut tx, order, "paid").await?;
        // The same verb as outside of a transaction: in here it waits for the commit.
        ship(order).perform_async().await?;
        anyhow::Ok(())
    })
    .await
}

/// Hands the parcel over.
#[optimus::task]
async fn ship(order: i64, #[data] pool: SqlitePool, ctx: Context) -> anyhow::Result<()> {
    ctx.once(&pool, async |mut tx| set_state(&mut tx, order, "shipped").await).await
}

async fn set_state(
    tx: &mut sqlx::Transaction<'static, sqlx::Sqlite>,
    order: i64,
    state: &str,
) -> anyhow::Result<()> {
    let update = "UPDATE orders SET state = ? WHERE id = ?";
    sqlx::query(update).bind(state).bind(order).execute(&mut **tx).await?;
    Ok(())
}

/// Takes an order: its row and its first task are committed together, or neither is.
async fn take_order(pool: &SqlitePool, order: i64) -> anyhow::Result<()> {
    transaction(pool, async |mut tx| {
        let insert = "INSERT OR IGNORE INTO orders VALUES (?, 'new')";
        let is_new = sqlx::query(insert).bind(order).execute(&mut **tx).await?.rows_affected() == 1;
        if is_new {
            reserve(order).perform_async().await?;
        }
        anyhow::Ok(())
    })
    .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = env::args().nth(1).map_or_else(|| folder.path().join("orders.db"), Into::into);
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(10));
    let pool = SqlitePool::connect_with(options).await?;
    migrate(&pool).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    sqlx::query("INSERT OR IGNORE INTO stock VALUES ('book', ?)")
        .bind(STOCK)
        .execute(&pool)
        .await?;

    let url = env::var("OPTIMUS_URL").unwrap_or_else(|_| "memory://orders".to_owned());
    Client::connect(&url).await?.install();
    let worker = Worker::builder(&url).lease(LEASE).data(pool.clone()).outbox(&pool).build()?;
    let shown = worker
        .run_until(async {
            for order in 1..=ORDERS {
                take_order(&pool, order).await?;
            }
            wait_for_all(&pool).await?;
            show(&pool).await
        })
        .await?;
    shown.context("the orders")
}

/// Waits until each order is shipped or sold out.
async fn wait_for_all(pool: &SqlitePool) -> anyhow::Result<()> {
    let open = "SELECT COUNT(*) FROM orders WHERE state NOT IN ('shipped', 'sold out')";
    loop {
        let left: i64 = sqlx::query_scalar(open).fetch_one(pool).await?;
        println!("{left} orders are open, {} calls wait in the outbox", lag(pool).await?.rows);
        if left == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn show(pool: &SqlitePool) -> anyhow::Result<()> {
    let states = "SELECT state, COUNT(*) FROM orders GROUP BY state ORDER BY state";
    for row in sqlx::query(states).fetch_all(pool).await? {
        println!("{}: {}", row.try_get::<String, _>(0)?, row.try_get::<i64, _>(1)?);
    }
    let paid: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM payments").fetch_one(pool).await?;
    let stock: i64 = sqlx::query_scalar("SELECT count FROM stock").fetch_one(pool).await?;
    println!("{paid} payments, {stock} in stock");
    Ok(())
}
