//! `cargo xtask check`: the checks that do not run a test.

use std::process::Stdio;

use anyhow::Context as _;

use crate::cargo::{cargo, root, run};
use crate::steps::Steps;
use crate::{Command, packages, refuse};

pub(crate) const COMMAND: Command = Command {
    name: "check",
    usage: "check",
    about: "Format, clippy and rustdoc, with warnings as errors, and the packages as published.",
    run: |args| {
        refuse(&args)?;
        let mut steps = Steps::default();
        check(&mut steps);
        steps.print_overview();
        Ok(steps.failed() == 0)
    },
};

/// Runs the five checks.
pub(crate) fn check(steps: &mut Steps) {
    steps.run("format", || {
        need("fmt", "rustfmt")?;
        run(&mut cargo(&["fmt", "--all", "--check"])).context("`cargo fmt --all` repairs it")
    });
    steps.run("clippy", || {
        need("clippy", "clippy")?;
        run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    });
    // In the workspace, some package turns on each feature of the others.
    steps.run("clippy without features", || {
        let packages = ["-p", "optimus-tasks", "-p", "optimus-tasks-sql"];
        let mut clippy = cargo(&["clippy", "--no-default-features"]);
        run(clippy.args(packages).args(["--", "-D", "warnings"]))
    });
    steps.run("rustdoc", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.run("packages", packages::check);
}

/// Adds a component of the toolchain that a minimal installation does not have.
fn need(subcommand: &str, component: &str) -> anyhow::Result<()> {
    let mut probe = cargo(&[subcommand, "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    if run(&mut probe).is_ok() {
        return Ok(());
    }
    println!("{component} is missing: adding it with rustup");
    let mut rustup = std::process::Command::new("rustup");
    run(rustup.args(["component", "add", component]).current_dir(root()))
        .with_context(|| format!("`cargo {subcommand}` is missing and could not be added"))
}
