//! A plain connection for what a test does to a server behind the library's back.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use crate::RedisServer;

impl RedisServer {
    /// Connects to the server for raw commands. It waits up to 30 s for an answer, because
    /// the commands of a test (`DEBUG SLEEP`, `FLUSHALL`) may be slow.
    pub async fn admin(&self) -> MultiplexedConnection {
        let patience = Some(Duration::from_secs(30));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(patience)
            .set_response_timeout(patience);
        let client = redis::Client::open(self.url()).expect("the address is one of ours");
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .expect("the server answered when it was started")
    }
}
