//! Each order is reserved, billed and shipped, once and in this order, although the steps are
//! triggered in other orders, one worker is killed and another one is added.

use std::time::Duration;

use optimus_testkit::{Proc, ProcBuilder, RedisServer};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("order_flow").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

#[tokio::test]
async fn steps_that_are_triggered_in_any_order_run_in_theirs() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db").display().to_string();
    let mut trigger = start(&redis, &["trigger", "100"]);
    let mut doomed = start(&redis, &["work", &file]);
    doomed.wait_for_line("shipped", SOON).await;
    let heir = start(&redis, &["work", &file]);
    heir.wait_for_line("optimus worker", SOON).await;
    doomed.kill9();

    assert!(trigger.wait(SOON).await.success());
    let database = Connection::open(&file).unwrap();
    let sql = "SELECT group_concat(what, ' ') FROM (SELECT * FROM step ORDER BY number) \
               GROUP BY shop_order";
    let mut query = database.prepare(sql).unwrap();
    let flows = query.query_map((), |row| row.get::<_, String>(0)).unwrap();
    let flows: Vec<String> = flows.map(Result::unwrap).collect();
    assert_eq!(flows.len(), 100);
    assert!(flows.iter().all(|flow| flow == "reserved billed shipped"), "{flows:?}");
}
