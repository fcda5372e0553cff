//! A worker that was frozen beyond its lease writes late, and the user's database refuses it.

use std::time::Duration;

use optimus_testkit::{Proc, ProcBuilder, RedisServer};
use rusqlite::Connection;

const SOON: Duration = Duration::from_secs(30);

fn start(redis: &RedisServer, args: &[&str]) -> Proc {
    let program = Proc::built("fenced").env("OPTIMUS_URL", redis.url());
    args.iter().fold(program, ProcBuilder::arg).start()
}

#[tokio::test]
async fn a_late_write_of_a_frozen_worker_is_refused_by_the_users_database() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reports.db").display().to_string();
    let frozen = start(&redis, &["work", &file]);
    frozen.wait_for_line("optimus worker", SOON).await;
    let mut submit = start(&redis, &["submit"]);
    frozen.wait_for_line("attempt 1 of may begins", SOON).await;
    frozen.signal("STOP");

    let heir = start(&redis, &["work", &file]);
    heir.wait_for_line("attempt 2 has written may", SOON).await;
    frozen.signal("CONT");
    frozen.wait_for_line("attempt 1 is refused, a later one has may", SOON).await;

    assert!(submit.wait(SOON).await.success());
    let database = Connection::open(&file).unwrap();
    let text: String = database.query_row("SELECT text FROM report", (), |row| row.get(0)).unwrap();
    assert_eq!(text, "written by attempt 2");
}
