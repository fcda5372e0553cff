//! `cargo xtask older`: runs a worker of an earlier commit and one of the present commit on the
//! same queues.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use optimus_testkit::REDIS_SERVER_VAR;

use crate::cargo::{cargo, root, run};
use crate::{Command, redis};

pub(crate) const COMMAND: Command = Command {
    name: "older",
    usage: "older [REVISION]",
    about: "Build the worker of an earlier commit (without a revision: the last one before the \
            version of records rose), and run it beside the present worker on queues with lanes, \
            limits, prerequisites and groups.",
    run: |args| older(&args).map(|()| true),
};

/// The file with the version of records, and its line.
const RECORD: &str = "optimus-core/src/record.rs";
const VERSION: &str = "pub const RECORD_VERSION";
/// The tests read this variable.
const OLDER_VAR: &str = "OPTIMUS_OLDER_WORKER";
const TEST: &str = "scale";

fn older(args: &[String]) -> anyhow::Result<()> {
    ensure!(args.len() <= 1, "give one revision, or none");
    let program = redis::find_or_install()?;
    let revision = match args.first() {
        Some(revision) => revision.clone(),
        None => before_the_last_version()?,
    };
    let worktree = Worktree::of(&revision)?;
    println!("The older worker is that of {revision}.");
    let worker = worktree.build()?;
    let mut command = cargo(&["test", "--workspace", "--test", TEST, "--", "older::beside::"]);
    command.args(["--ignored", "--nocapture", "--test-threads", "1"]);
    run(command.env(REDIS_SERVER_VAR, program).env(OLDER_VAR, worker))
}

/// Returns the commit before the one in which the version of records last rose.
fn before_the_last_version() -> anyhow::Result<String> {
    let range = format!("-G{VERSION}");
    let rose = git(&["log", "-1", "--format=%H", &range, "--", RECORD])?;
    ensure!(!rose.is_empty(), "no commit has changed {VERSION}; name a revision");
    git(&["rev-parse", &format!("{rose}^")])
}

fn git(args: &[&str]) -> anyhow::Result<String> {
    let output = Process::new("git")
        .args(args)
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("git could not be started")?;
    ensure!(output.status.success(), "git {} failed", args.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// An earlier commit in a temporary folder, which is removed at the end. What it builds stays in
/// the target folder for the next run.
struct Worktree {
    path: PathBuf,
    target: PathBuf,
}

impl Worktree {
    fn of(revision: &str) -> anyhow::Result<Self> {
        let path = env::temp_dir().join(format!("optimus-older-{}", std::process::id()));
        let text = path.to_str().context("the path of the temporary folder is not Unicode")?;
        git(&["worktree", "add", "--quiet", "--detach", text, revision])?;
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        Ok(Self { path, target: target.join("older") })
    }

    /// Builds the test program that is a worker, and returns its path.
    fn build(&self) -> anyhow::Result<PathBuf> {
        let mut command = cargo(&["test", "--workspace", "--test", TEST, "--no-run"]);
        command.arg("--message-format=json-render-diagnostics");
        command.current_dir(&self.path).env("CARGO_TARGET_DIR", &self.target);
        let output = command.stderr(Stdio::inherit()).output().context("cargo could not start")?;
        ensure!(output.status.success(), "the older version does not build");
        let lines = String::from_utf8_lossy(&output.stdout);
        let program = lines.lines().rev().find_map(|line| program_of(line, &self.path));
        program.context("the older version has no test `scale`")
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        drop(git(&["worktree", "remove", "--force", &self.path.to_string_lossy()]));
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Returns the program that a message of cargo names, if it is that of the journeys.
fn program_of(line: &str, worktree: &Path) -> Option<PathBuf> {
    let source = worktree.join("tests/journeys/tests/scale/main.rs");
    if !line.contains(&*source.to_string_lossy()) {
        return None;
    }
    let (_, program) = line.split_once("\"executable\":\"")?;
    Some(program.split('"').next()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_the_journeys_is_found_among_the_messages_of_cargo() {
        let line = |folder: &str| {
            format!(
                "{{\"target\":{{\"src_path\":\"/w/tests/{folder}/tests/scale/main.rs\"}},\
                 \"executable\":\"/t/scale-1\"}}"
            )
        };
        let worktree = Path::new("/w");
        assert_eq!(program_of(&line("journeys"), worktree), Some("/t/scale-1".into()));
        assert_eq!(program_of(&line("simulation"), worktree), None);
    }
}
