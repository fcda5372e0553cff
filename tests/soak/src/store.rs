//! The Redis of a run, and the actions on it: [`Store`].

use std::process::Command;
use std::time::Duration;

use optimus_testkit::{RedisServer, RedisServerBuilder, find_redis_server};
use redis::{AsyncConnectionConfig, FromRedisValue, RedisResult};
use tokio::sync::{Mutex, MutexGuard};

/// The time limit of a command. It is as long as the longest act on Redis.
const PATIENCE: Duration = Duration::from_secs(20);

/// Redis closes connections that were idle for this many seconds.
const CLOSES_IDLE_AFTER_S: &str = "2";

/// A private Redis with an append-only file, on a port of the loopback interface.
pub(crate) struct Store {
    url: String,
    server: Mutex<RedisServer>,
}

impl Store {
    /// Starts the server. It syncs its file with each write until the setting is changed.
    pub(crate) fn start() -> Self {
        Self::of(options())
    }

    /// Starts a server whose clock can be set, which makes it slower.
    pub(crate) fn with_settable_clock() -> Self {
        Self::of(options().settable_clock())
    }

    fn of(options: RedisServerBuilder) -> Self {
        let server = options.start();
        Self { url: server.url(), server: Mutex::new(server) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the process. While the caller holds it, no other task kills or stops it.
    pub(crate) async fn server(&self) -> MutexGuard<'_, RedisServer> {
        self.server.lock().await
    }

    /// Sends a command over its own connection.
    ///
    /// # Errors
    ///
    /// When Redis is not available, or replies with an error.
    pub(crate) async fn command<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = redis::Client::open(self.url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query_async(&mut connection).await
    }

    /// Returns a number from Redis' `INFO`.
    ///
    /// # Errors
    ///
    /// When Redis is not available.
    pub(crate) async fn info(&self, name: &str) -> RedisResult<Option<u64>> {
        let info: String = self.command(&["INFO"]).await?;
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.and_then(|value| value.trim().parse().ok()))
    }
}

fn options() -> RedisServerBuilder {
    let options = RedisServer::builder().tcp().appendonly_always().survives_a_full_disk();
    let options = options.arg("--timeout", CLOSES_IDLE_AFTER_S);
    if needs_leave_to_debug() {
        return options.arg("--enable-debug-command", "local");
    }
    options
}

/// Returns whether a setting must allow DEBUG, as Redis 7 and later require.
fn needs_leave_to_debug() -> bool {
    let program = find_redis_server().unwrap_or_else(|| "redis-server".into());
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = text.unwrap_or_default();
    let major = version.split("v=").nth(1).and_then(|version| version.split('.').next());
    major.and_then(|major| major.parse::<u32>().ok()).is_none_or(|major| major >= 7)
}
