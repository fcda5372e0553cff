//! Each view is in the database once, and few transactions have written them, although a worker is
//! killed.

use std::time::Duration;

use optimus_testkit::{Proc, ProcBuilder, RedisServer};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(60);

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("gathered_rows").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

#[tokio::test]
async fn rows_are_written_once_and_many_at_a_time_while_a_worker_is_killed() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("views.db").display().to_string();
    let mut doomed = start(&redis, &["work", &file]);
    doomed.wait_for_line("optimus worker", SOON).await;
    let mut submit = start(&redis, &["submit", "3", "4000"]);
    doomed.wait_for_line("views of site", SOON).await;
    doomed.kill9();
    let heir = start(&redis, &["work", &file]);

    assert!(submit.wait(SOON).await.success());
    let database = Connection::open(&file).unwrap();
    let count = |sql: &str| -> u32 { database.query_row(sql, (), |row| row.get(0)).unwrap() };
    assert_eq!(count("SELECT count(*) FROM view"), 12_000);
    let runs = count("SELECT count(*) FROM run");
    assert!(runs < 200, "{runs} runs");
    drop(heir);
}
