//! `cargo xtask soak`: causes faults around a release build, and checks the outcome of each task.

use std::path::Path;

use optimus_testkit::{REDIS_SERVER_VAR, has_faketime};

use crate::cargo::{release_program, run};
use crate::{Command, install, redis};

pub(crate) const COMMAND: Command = Command {
    name: "soak",
    usage: "soak [--minutes N] [--seed S] [--profile P] [--quick] [--keep]",
    about: "Kill and freeze processes, cut connections, fill Redis, and check that no task is \
            lost.",
    run: |args| soak(&redis::find_or_install()?, &args).map(|()| true),
};

/// Runs a short soak with every kind of fault, in about a minute.
///
/// # Errors
///
/// When a promise was broken. The output contains the seed.
pub(crate) fn quick(redis_server: &Path) -> anyhow::Result<()> {
    soak(redis_server, &["--quick".to_owned()])
}

fn soak(redis_server: &Path, args: &[String]) -> anyhow::Result<()> {
    if !has_faketime()
        && let Err(problem) = install::faketime()
    {
        eprintln!("This soak changes no clock: {problem:#}");
    }
    let mut command = release_program("optimus-soak");
    run(command.args(args).env(REDIS_SERVER_VAR, redis_server))
}
