//! `cargo xtask simulate`: many runs of whole clients and workers on virtual time.

use crate::Command;
use crate::cargo::{cargo, run};

pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    usage: "simulate [--seed S] [--calls N] [--loud] | simulate --sweep",
    about: "Users, workers and faults by seeds, 10,000,000 script calls; or one fault everywhere.",
    run: |args| if args == ["--sweep"] { sweep() } else { seeds(&args) }.map(|()| true),
};

fn seeds(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "optimus-simulation"]);
    run(command.arg("--").args(args))
}

/// Every combination of scene, exchange and fault.
fn sweep() -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--release", "--package", "optimus-simulation"]);
    command.args(["--test", "sweep", "--", "--nocapture"]);
    run(command.env("OPTIMUS_SWEEP_STEP", "1"))
}
