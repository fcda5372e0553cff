//! Workers share 16 tables of coupons. One is killed, one is frozen, and the number of shards
//! changes; each coupon is sent once.

use std::{path::Path, time::Duration};

use optimus_testkit::{Proc, ProcBuilder, RedisServer, eventually};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);
const ROWS: i64 = 120;

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("coupons").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

fn number(file: &Path, sql: &str) -> i64 {
    let database = Connection::open(file).unwrap();
    database.busy_timeout(SOON).unwrap();
    database.query_row(sql, (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn each_coupon_is_sent_once_while_workers_come_and_go() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coupons.db");
    let path = file.display().to_string();
    assert!(start(&redis, &["fill", &path, &ROWS.to_string()]).wait(SOON).await.success());
    let sent = async || number(&file, "SELECT count(*) FROM sent");
    let [mut doomed, frozen] = [(); 2].map(|()| start(&redis, &["work", &path]));
    eventually("some are sent", SOON, async || sent().await > 0).await;
    doomed.kill9();
    frozen.signal("STOP");
    let last = start(&redis, &["work", &path]);
    last.wait_for_line("optimus worker", SOON).await;
    assert!(start(&redis, &["shards", "7"]).wait(SOON).await.success());
    frozen.signal("CONT");

    let expected = 16 * (ROWS - 1);
    eventually("all are sent", SOON, async || sent().await == expected).await;
    assert_eq!(number(&file, "SELECT count(DISTINCT coupon) FROM sent"), expected);
    let still_open = "SELECT count(*) FROM coupon_3 WHERE status = 0";
    assert_eq!(
        number(&file, still_open),
        1,
        "a coupon that fails is set aside, and not in the way"
    );
}
