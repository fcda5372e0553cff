//! `cargo xtask check`: the checks that do not run a test.

use std::path::PathBuf;
use std::process::Stdio;
use std::{env, fs};

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
const PACKAGES: [&str; 12] = [
    "optimus-tasks-macros",
    "optimus-tasks-embedded",
    "optimus-tasks-core",
    "optimus-tasks-fsck",
    "optimus-tasks-metrics",
    "optimus-tasks-console",
    "optimus-tasks-otel",
    "optimus-tasks-worker",
    "optimus-tasks-dispenser",
    "optimus-tasks",
    "optimus-tasks-cli",
    "optimus-tasks-sql",
];

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
    // Each package is built from its packaged files alone, so that the build fails if a file is
    // missing there.
    steps.run("packages", || {
        let names: Vec<&str> = PACKAGES.iter().flat_map(|name| ["-p", name]).collect();
        forget_packaged()?;
        run(cargo(&["clean", "--quiet"]).args(&names))?;
        run(cargo(&["package", "--allow-dirty"]).args(&names))
    });
}

/// Removes the files that cargo has unpacked from our packages. Cargo does not unpack a package
/// again if it has a package of that version. Without this step, cargo would build the files of an
/// earlier run.
fn forget_packaged() -> anyhow::Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(env::home_dir()?.join(".cargo"))) else {
        return Ok(());
    };
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?.path();
        for name in PACKAGES {
            let unpacked = registry.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
            if unpacked.exists() {
                fs::remove_dir_all(&unpacked)
                    .with_context(|| format!("could not remove {}", unpacked.display()))?;
            }
        }
    }
    Ok(())
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
