//! `cargo xtask scale`: tests workers at full size, in a release build, one test at a time.

use optimus_testkit::REDIS_SERVER_VAR;

use crate::cargo::{cargo, run};
use crate::{Command, redis};

pub(crate) const COMMAND: Command = Command {
    name: "scale",
    usage: "scale [days|dependencies|fleet|held|lanes|limits|poison|shares|spinner]",
    about: "Test large workers (4,096 slots, 200 queues, 100,000 tasks held, 1,000 \
            lanes, 20 limits, 100,000 pairs of dependent tasks, months of statistics) and print \
            measurements.",
    run: |args| scale(&args).map(|()| true),
};

/// The module with the tests that take minutes.
const LONG: &str = "long::";

fn scale(args: &[String]) -> anyhow::Result<()> {
    let program = redis::find_or_install()?;
    let mut command = cargo(&["test", "--release", "--workspace", "--test", "scale", "--"]);
    command.args(["--ignored", "--nocapture", "--test-threads", "1"]);
    // A test runs if its name contains one of these words.
    command.args(args.iter().map(|file| format!("{file}::{LONG}")));
    if args.is_empty() {
        command.arg(LONG);
    }
    run(command.env(REDIS_SERVER_VAR, program))
}
