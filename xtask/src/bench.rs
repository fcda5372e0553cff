//! `cargo xtask bench`: measures the queue in a release build, on a private Redis.

use std::path::{Path, absolute};

use anyhow::Context as _;
use optimus_testkit::REDIS_SERVER_VAR;

use crate::cargo::{cargo, release_program, run};
use crate::{Command, redis, refuse};

pub(crate) const COMMAND: Command = Command {
    name: "bench",
    usage: "bench [--quick] [--only A,…] [--peers A,…|all] [--json FILE] [--aof] | --micro",
    about: "Measure speed and cost. An unknown argument prints the list of measurements.",
    run: bench,
};

/// The option whose value is a path, relative to the user's current folder.
const JSON: &str = "--json";

fn bench(mut args: Vec<String>) -> anyhow::Result<bool> {
    let program = redis::find_or_install()?;
    if args.first().is_some_and(|arg| arg == "--micro") {
        refuse(&args[1..])?;
        return micro(&program).map(|()| true);
    }
    let value = args.iter().position(|arg| arg == JSON).and_then(|at| args.get_mut(at + 1));
    if let Some(path) = value {
        let whole = absolute(&*path)?;
        *path = whole.into_os_string().into_string().ok().context("the path is not Unicode")?;
    }
    harness(&program, &args).map(|()| true)
}

/// Runs a short version of every measurement, and counts instructions if valgrind is installed.
/// Each task must run exactly once, and Redis, a client and a worker must not do more work than
/// before.
///
/// # Errors
///
/// When a task does not run exactly once, or needs more work.
pub(crate) fn quick(redis_server: &Path) -> anyhow::Result<()> {
    harness(redis_server, &["--quick".to_owned()])?;
    harness(redis_server, &["--quick", "--only", "instructions,dispenser"].map(str::to_owned))
}

fn harness(redis_server: &Path, args: &[String]) -> anyhow::Result<()> {
    let mut command = release_program("optimus-bench");
    run(command.args(args).env(REDIS_SERVER_VAR, redis_server))
}

/// Runs the measurements that show a regression even on a busy machine: separate parts,
/// allocations, and instructions.
fn micro(redis_server: &Path) -> anyhow::Result<()> {
    let mut parts = cargo(&["bench", "--quiet", "--package", "optimus-bench"]);
    run(parts.env(REDIS_SERVER_VAR, redis_server))?;
    harness(redis_server, &["--only".to_owned(), "instructions".to_owned()])
}
