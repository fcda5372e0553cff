//! `cargo xtask simulate`: runs whole clients and workers on virtual time, many times.

use crate::Command;
use crate::cargo::{cargo, release_program, run};

pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    usage: "simulate [--sources] [--seed S] [--calls N] [--loud] | simulate --sweep",
    about: "Run random users, workers and faults for 10,000,000 script calls, or one fault at \
            every place.",
    run: |args| if args == ["--sweep"] { sweep() } else { seeds(&args) }.map(|()| true),
};

fn seeds(args: &[String]) -> anyhow::Result<()> {
    run(release_program("optimus-simulation").args(args))
}

/// Runs every combination of scene, exchange and fault.
fn sweep() -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--release", "--package", "optimus-simulation"]);
    command.args(["--test", "sweep", "--", "--nocapture"]);
    run(command.env("OPTIMUS_SWEEP_STEP", "1"))
}
