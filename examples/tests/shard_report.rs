//! The report over 1,000 shards adds all of them up, in memory and on a Redis, and counts the one
//! that can't be read.

use std::time::Duration;

use optimus_testkit::{Proc, RedisServer};

const SOON: Duration = Duration::from_secs(60);

async fn adds_up(url: &str) {
    let mut report = Proc::built("shard_report").arg("1000").arg(url).start();
    report.wait_for_line("1000 shards, 1 of them unreadable", SOON).await;
    for country in ["DE", "FR", "PT"] {
        report.wait_for_line(&format!("{country}: 498501 cents"), SOON).await;
    }
    assert!(report.wait(SOON).await.success());
}

#[tokio::test]
async fn the_report_in_memory_has_all_shards() {
    adds_up("memory://shards").await;
}

#[tokio::test]
async fn the_report_on_redis_has_all_shards() {
    let redis = RedisServer::start();
    adds_up(&redis.url()).await;
}
