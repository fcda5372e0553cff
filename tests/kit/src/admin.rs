//! A plain connection for commands that a test sends to a server without the library.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use crate::RedisServer;

impl RedisServer {
    /// Connects to the server for raw commands. It waits up to 30 s for a reply, because some
    /// commands of tests (`DEBUG SLEEP`, `FLUSHALL`) are slow.
    pub async fn admin(&self) -> MultiplexedConnection {
        let patience = Some(Duration::from_secs(30));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(patience)
            .set_response_timeout(patience);
        let client = redis::Client::open(self.url()).expect("the address of a server is valid");
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .expect("the server has answered before")
    }
}
