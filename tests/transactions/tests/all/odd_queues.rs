//! Rows of SQLite that name a queue in another way than its text, as a driver may that binds bytes.

use optimus_sql::IntoOutboxRow as _;
use optimus_testkit::{RedisServer, eventually};
use redis::aio::MultiplexedConnection;
use sqlx::{AssertSqlSafe, Sqlite};

use crate::setup::{SOON, Seen, Setup, note};

async fn set_maxmemory(raw: &mut MultiplexedConnection, bytes: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory").arg(bytes).query_async::<()>(raw).await.unwrap();
}

/// Returns how many calls were refused because the memory is full.
async fn refused(raw: &mut MultiplexedConnection) -> u64 {
    let info: String = redis::cmd("INFO").arg("errorstats").query_async(raw).await.unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("errorstat_OOM:count="));
    count.map_or(0, |count| count.parse().unwrap())
}

/// The call of the odd row is sent after those that came before, and none is sent twice.
async fn a_row_with_its_queue_as(expression: &str) {
    let server = RedisServer::start();
    let setup = Setup::<Sqlite>::start().await.moved_to(&server).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let relay = setup.start_relay().await;
    set_maxmemory(&mut raw, "1mb").await;
    setup.commit(0).await;
    eventually("a batch is noted", SOON, async || setup.is_noted().await).await;
    let row = note(1, 1).outbox_row().unwrap();
    let sql = format!("INSERT INTO optimus_outbox (queue, id, body) VALUES ({expression}, ?, ?)");
    let insert = sqlx::query(AssertSqlSafe(sql)).bind(row.id()).bind(row.body());
    insert.execute(&setup.pool).await.unwrap();
    // The relay reads the row after each try, so it has read it before the last of these.
    let goal = refused(&mut raw).await + 3;
    let is_tried = async || refused(&mut raw.clone()).await >= goal;
    eventually("the batch is tried again", SOON, is_tried).await;
    set_maxmemory(&mut raw, "0").await;
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    setup.all_relayed().await;
    setup.commit(2).await;
    eventually("the last call ran", SOON, async || seen.all().contains(&(1, 2))).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), [(1, 0), (1, 1), (1, 2)]);
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_its_queue_as_bytes_waits_for_its_turn() {
    a_row_with_its_queue_as("CAST('default' AS blob)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_nul_in_its_queue_waits_for_its_turn() {
    a_row_with_its_queue_as("'default' || char(0)").await;
}
