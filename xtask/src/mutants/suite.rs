//! The tests that must find a mutant. They are built, then run with a time limit.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use optimus_testkit::{ChildGuard, REDIS_SERVER_VAR, RedisServer, SHARED_REDIS_VAR};

use super::switch::PLANTED;
use super::tree::Tree;
use crate::tally::Tally;

/// The time limit for a test program. A program that runs longer hangs, and that counts as noticed,
/// too.
const ENDS_WITHIN: Duration = Duration::from_secs(300);
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// The error of a script that does not compile. This error fails every test, so it proves nothing.
const BROKEN_SCRIPT: &str = "Error compiling script";

/// Arguments of `cargo test`, which runs in a copy of the repository.
pub(crate) struct Suite<'a> {
    pub(crate) args: &'a [String],
    pub(crate) tree: &'a Tree,
    pub(crate) redis_server: &'a Path,
    /// The bug of Rust code that is planted.
    pub(crate) bug: &'a str,
}

/// How a run of tests ended.
pub(crate) enum Outcome {
    Green,
    /// The names of the tests that failed.
    Red(Vec<String>),
    Hung,
    /// The compiler's error. It proves nothing about the tests.
    NotBuilt(String),
    NothingRan,
}

impl Suite<'_> {
    /// Builds and runs the tests. Writes their output to the log with that name.
    pub(crate) fn run(&self, log: &str) -> anyhow::Result<Outcome> {
        let split = self.args.iter().position(|arg| arg == "--").unwrap_or(self.args.len());
        let (of_cargo, of_tests) = self.args.split_at(split);
        let of_tests = of_tests.get(1..).unwrap_or_default();
        let mut cargo = self.tree.cargo(&["test", "--no-run", "--color=never"]);
        let built = cargo.args(of_cargo).output().context("cargo could not be started")?;
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        let path = self.tree.logs().join(log).with_extension("log");
        if !built.status.success() {
            fs::write(&path, &said)?;
            let error = said.lines().find(|line| line.starts_with("error"));
            return Ok(Outcome::NotBuilt(error.unwrap_or("cargo printed no error").to_owned()));
        }
        let (mut failed, mut tally) = (Vec::new(), Tally::default());
        for program in programs(&said) {
            let in_time = self.run_program(&self.tree.folder().join(program), of_tests, &path)?;
            let printed = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            if printed.contains(BROKEN_SCRIPT) {
                return Ok(Outcome::NotBuilt("a script does not compile".into()));
            }
            if !in_time {
                return Ok(Outcome::Hung);
            }
            printed.lines().for_each(|line| tally.add(line));
            failed.extend(printed.lines().filter_map(failed_test).map(str::to_owned));
        }
        Ok(match (failed.is_empty(), tally.passed + tally.failed) {
            (false, _) => Outcome::Red(failed),
            (true, 0) => Outcome::NothingRan,
            (true, _) => Outcome::Green,
        })
    }

    /// Runs a test program with its own Redis server. Returns `false` if the program hung.
    fn run_program(&self, program: &Path, args: &[String], log: &Path) -> anyhow::Result<bool> {
        let server = RedisServer::start();
        let output = File::create(log)?;
        let mut command = ChildGuard::command(program, None);
        command.args(args).current_dir(self.tree.folder()).stdout(output.try_clone()?);
        command.stderr(Stdio::from(output));
        command.env(REDIS_SERVER_VAR, self.redis_server).env(SHARED_REDIS_VAR, server.url());
        command.env(PLANTED, self.bug);
        let mut tests = ChildGuard::spawn(&mut command)?;
        let deadline = Instant::now() + ENDS_WITHIN;
        while tests.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(CHECK_EVERY);
        }
        Ok(true)
    }
}

/// Returns the path in a line such as `  Executable unittests src/lib.rs (target/debug/deps/x-1f)`.
fn programs(said: &str) -> Vec<PathBuf> {
    let lines = said.lines().filter(|line| line.trim_start().starts_with("Executable "));
    let paths = lines.filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'));
    paths.map(PathBuf::from).collect()
}

/// Returns the name in a line such as `test a::b ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

impl Outcome {
    /// Returns whether the tests noticed the mutant.
    pub(crate) fn is_kill(&self) -> bool {
        matches!(self, Self::Red(_) | Self::Hung)
    }

    pub(crate) fn verdict(&self) -> String {
        if self.is_kill() { format!("killed: {self}") } else { format!("SURVIVED: {self}") }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Green => f.write_str("all tests passed"),
            Self::Red(failed) if failed.len() == 1 => f.write_str(&failed[0]),
            Self::Red(failed) => write!(f, "{} and {} more", failed[0], failed.len() - 1),
            Self::Hung => write!(f, "the tests still ran after {} s", ENDS_WITHIN.as_secs()),
            Self::NotBuilt(why) => {
                write!(f, "not tested, because the mutant does not compile: {why}")
            }
            Self::NothingRan => f.write_str("not tested, because no test has that name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_failures_are_read_from_what_cargo_and_tests_print() {
        let said = "   Compiling a v0.1.0 (/b)\n  Executable tests/a.rs (/t/debug/deps/a-1)\n\
                    \x20 Executable unittests src/lib.rs (/t/debug/deps/b-2)\n";
        assert_eq!(
            programs(said),
            [Path::new("/t/debug/deps/a-1"), Path::new("/t/debug/deps/b-2")]
        );
        assert_eq!(failed_test("test stale::a ... FAILED"), Some("stale::a"));
        assert_eq!(failed_test("test stale::a ... ok"), None);
    }
}
