//! Two real servers; the second one can replace the first.

use optimus_testkit::RedisServer;

use super::Raw;

/// A primary and its replica.
pub struct Pair {
    pub primary: RedisServer,
    pub replica: RedisServer,
}

impl Pair {
    pub async fn start() -> Self {
        let fast = || RedisServer::builder().tcp().arg("--repl-diskless-sync-delay", "0");
        let (primary, replica) = (fast().start(), fast().start());
        let url = primary.url();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
        Raw::connect(&replica.url()).await.run(&format!("REPLICAOF 127.0.0.1 {port}")).await;
        let mut admin = Raw::connect(&url).await;
        admin.run("SET attached 1").await;
        admin.run("WAIT 1 10000").await;
        assert_eq!(admin.info("connected_slaves").await, 1);
        Self { primary, replica }
    }

    /// Makes the replica a primary, with the data that it has at this time.
    pub async fn promote(&self) {
        Raw::connect(&self.replica.url()).await.run("REPLICAOF NO ONE").await;
    }
}
