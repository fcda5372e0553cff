//! The photos of reviewers who vanish or keep them too long go to others, and none comes back.

use std::time::Duration;

use optimus_testkit::{Proc, RedisServer};

const SOON: Duration = Duration::from_secs(60);

async fn every_photo_is_decided_once(url: &str) {
    let mut program = Proc::built("review_desk").env("OPTIMUS_URL", url).start();
    assert!(program.wait(SOON).await.success(), "{:#?}", program.lines());
    for line in [
        "ann takes reported-photo, photo-1, photo-2",
        "bob takes photo-3, photo-4, photo-5, and leaves without a word",
        "ann has decided about reported-photo, photo-1, and keeps photo-2",
        "eve takes photo-2, photo-3, photo-4, photo-5, photo-6, photo-7, photo-8",
        "the decision of ann about photo-2 comes too late",
        "0 photos are left",
    ] {
        program.wait_for_line(line, SOON).await;
    }
}

#[tokio::test]
async fn every_photo_is_decided_once_in_memory() {
    every_photo_is_decided_once("memory://review-desk").await;
}

#[tokio::test]
async fn every_photo_is_decided_once_through_redis() {
    let redis = RedisServer::start();
    every_photo_is_decided_once(&redis.url()).await;
}
