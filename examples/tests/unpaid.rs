//! Workers charge the orders of 16 tables. Some only scan, some only run tasks, and one is killed;
//! each order is paid once, and those that always fail are given up.

use std::{path::Path, time::Duration};

use optimus_testkit::{Proc, ProcBuilder, RedisServer, eventually};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);
const ROWS: i64 = 120;

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("unpaid").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

fn number(file: &Path, sql: &str) -> i64 {
    let database = Connection::open(file).unwrap();
    database.busy_timeout(SOON).unwrap();
    database.query_row(sql, (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn each_order_is_paid_once_and_those_that_fail_are_given_up() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let path = file.display().to_string();
    assert!(start(&redis, &["fill", &path, &ROWS.to_string()]).wait(SOON).await.success());
    let mut doomed = start(&redis, &["work", &path]);
    let _others = [start(&redis, &["scan", &path]), start(&redis, &["run", &path])];
    let paid = async || number(&file, "SELECT count(*) FROM payment");
    eventually("some are paid", SOON, async || paid().await > 0).await;
    doomed.kill9();

    let expected = 16 * (ROWS - 1);
    eventually("all are paid", SOON, async || paid().await == expected).await;
    let given_up = "SELECT count(*) FROM orders_3 WHERE status = 0 AND failures = 4";
    eventually("the last one is given up", SOON, async || number(&file, given_up) == 1).await;
    let twice = "SELECT count(*) FROM (SELECT 1 FROM payment GROUP BY tbl, id HAVING count(*) > 1)";
    assert_eq!(number(&file, twice), 0);
    let archived = async || number(&file, "SELECT count(*) FROM old_order");
    eventually("the old order is archived", SOON, async || archived().await == 1).await;
    let look = start(&redis, &["look"]);
    look.wait_for_line("slice 3", SOON).await;
}
