//! The order service is killed again and again, and each order is reserved, paid and shipped once.

use std::time::Duration;

use optimus_testkit::{Proc, RedisServer};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn orders_are_handled_once_although_the_service_is_killed() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db").display().to_string();
    let start = || Proc::built("orders").env("OPTIMUS_URL", redis.url()).arg(&file).start();
    for _ in 0..4 {
        let mut service = start();
        service.wait_for_line("orders are open", SOON).await;
        service.kill9();
    }
    let mut service = start();
    assert!(service.wait(SOON).await.success());
    let database = Connection::open(&file).unwrap();
    let count = |sql: &str| database.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT COUNT(*) FROM orders WHERE state = 'shipped'"), 15);
    assert_eq!(count("SELECT COUNT(*) FROM orders WHERE state = 'sold out'"), 5);
    assert_eq!(count("SELECT COUNT(*) FROM payments"), 15);
    assert_eq!(count("SELECT COUNT(DISTINCT order_id) FROM payments"), 15);
    assert_eq!(count("SELECT count FROM stock"), 0);
}
