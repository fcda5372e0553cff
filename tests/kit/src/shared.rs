//! The server that harmless tests share.

use std::env;

use crate::RedisServer;

/// The environment variable with the URL of the shared server; `cargo xtask test` sets it.
pub const SHARED_REDIS_VAR: &str = "OPTIMUS_TEST_REDIS";

/// A Redis server to use but not to disturb: no `FLUSHALL`, no `CONFIG SET`, no restart, and only
/// keys of the test's own [`namespace`](crate::namespace).
#[derive(Debug)]
pub struct SharedRedis {
    url: String,
    // Kept only for its drop.
    _own: Option<RedisServer>,
}

impl SharedRedis {
    /// The address to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The server that `$OPTIMUS_TEST_REDIS` names. Without it, a private server that lives as long as
/// the handle, so that a single `cargo test` works too.
pub fn shared_redis() -> SharedRedis {
    if let Some(url) = env::var(SHARED_REDIS_VAR).ok().filter(|url| !url.is_empty()) {
        return SharedRedis { url, _own: None };
    }
    let own = RedisServer::start();
    SharedRedis { url: own.url(), _own: Some(own) }
}
