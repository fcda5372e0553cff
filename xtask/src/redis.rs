//! `cargo xtask redis`: finds the Redis server that the tests start, and installs one if there is
//! none.

use std::path::PathBuf;

use anyhow::Context as _;
use optimus_testkit::{REDIS_SERVER_VAR, find_redis_server};

use crate::{Command, install, refuse};

pub(crate) const COMMAND: Command = Command {
    name: "redis",
    usage: "redis",
    about: "Print the path of the Redis server that tests use. Install a server if there is none.",
    run: |args| {
        refuse(&args)?;
        println!("{}", find_or_install()?.display());
        Ok(true)
    },
};

/// Returns the path of the server's program. If there is none, installs one with the system's
/// package manager.
///
/// # Errors
///
/// When there is no server and it could not be installed.
pub(crate) fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(found) = find_redis_server() {
        return Ok(found);
    }
    let remedy = || format!("install a Redis server, or name its path in ${REDIS_SERVER_VAR}");
    install::redis_server().with_context(remedy)?;
    find_redis_server()
        .context("the Redis server was installed but is not in PATH")
        .with_context(remedy)
}
