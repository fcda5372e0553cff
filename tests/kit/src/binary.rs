//! Finds the program of the Redis server.

use std::env;
use std::path::PathBuf;

/// The environment variable that names the server program to use instead of the one in `PATH`.
pub const REDIS_SERVER_VAR: &str = "OPTIMUS_REDIS_SERVER";

/// Servers with the commands that Optimus needs, in the order of preference.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// Finds the Redis server's program: `$OPTIMUS_REDIS_SERVER` if it is set, otherwise the first of
/// `redis-server` and `valkey-server` in `PATH`.
pub fn find_redis_server() -> Option<PathBuf> {
    if let Some(named) = env::var_os(REDIS_SERVER_VAR).filter(|value| !value.is_empty()) {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    NAMES
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}
