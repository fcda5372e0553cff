//! The server that harmless tests share.

use std::env;

use crate::RedisServer;

/// The environment variable with the URL of the shared server. `cargo xtask test` sets it.
pub const SHARED_REDIS_VAR: &str = "OPTIMUS_TEST_REDIS";

/// A Redis server that tests share and must not disturb. A test may not use `FLUSHALL`, `CONFIG
/// SET` or a restart, and may use only keys of its own [`namespace`](crate::namespace).
#[derive(Debug)]
pub struct SharedRedis {
    url: String,
    // This field only keeps the server alive.
    _own: Option<RedisServer>,
}

impl SharedRedis {
    /// Returns the address for clients.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Returns the server that `$OPTIMUS_TEST_REDIS` names. Without this variable, returns a private
/// server that lives as long as the handle, so that a single `cargo test` works, too.
pub fn shared_redis() -> SharedRedis {
    if let Some(url) = env::var(SHARED_REDIS_VAR).ok().filter(|url| !url.is_empty()) {
        return SharedRedis { url, _own: None };
    }
    let own = RedisServer::start();
    SharedRedis { url: own.url(), _own: Some(own) }
}
