//! The events of each user are applied once and in order, although one worker is killed and another
//! one is added.

use std::time::Duration;

use optimus_testkit::{Proc, ProcBuilder, RedisServer};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("event_stream").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

#[tokio::test]
async fn events_are_applied_in_order_while_workers_come_and_go() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accounts.db").display().to_string();
    let mut doomed = start(&redis, &["work", &file]);
    doomed.wait_for_line("optimus worker", SOON).await;
    let mut submit = start(&redis, &["submit", "10", "30"]);
    doomed.wait_for_line("event 3 applied", SOON).await;
    let heir = start(&redis, &["work", &file]);
    heir.wait_for_line("applied", SOON).await;
    doomed.kill9();

    assert!(submit.wait(SOON).await.success());
    let database = Connection::open(&file).unwrap();
    let sql = "SELECT count(*) FROM account WHERE last = 30 AND cents = 15";
    let users: u32 = database.query_row(sql, (), |row| row.get(0)).unwrap();
    assert_eq!(users, 10, "each user has all 30 events");
}
