//! `cargo xtask check`: the checks that run no test.

use std::process::Stdio;

use anyhow::Context as _;

use crate::cargo::{cargo, root, run};
use crate::steps::Steps;
use crate::{Command, refuse};

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

/// The published packages, in the order of publication.
const PACKAGES: [&str; 5] = [
    "optimus-tasks-macros",
    "optimus-tasks-embedded",
    "optimus-tasks-core",
    "optimus-tasks-worker",
    "optimus-tasks",
];

/// Runs the four checks.
pub(crate) fn check(steps: &mut Steps) {
    steps.run("format", || {
        need("fmt", "rustfmt")?;
        run(&mut cargo(&["fmt", "--all", "--check"])).context("`cargo fmt --all` repairs it")
    });
    steps.run("clippy", || {
        need("clippy", "clippy")?;
        run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    });
    steps.run("rustdoc", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    // Each is built from its packaged files alone, so a file that is missing there is found.
    steps.run("packages", || {
        let names = PACKAGES.iter().flat_map(|name| ["-p", name]);
        run(cargo(&["package", "--allow-dirty"]).args(names))
    });
}

/// Adds a component of the toolchain that a minimal installation lacks.
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
