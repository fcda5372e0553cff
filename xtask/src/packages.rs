//! Checks the packages as they are published.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::cargo::{cargo, root, run};

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

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Checks each package alone, with the files that it publishes and the features that it asks for.
/// So a file or a feature that is missing there is found.
///
/// `cargo package` would build each of them, and begin again each time. A check finds the same, and
/// what it has read of the dependencies serves the next run.
///
/// # Errors
///
/// When a package can't be made, or does not compile.
pub(crate) fn check() -> anyhow::Result<()> {
    let target = root().join("target/packages");
    let names = PACKAGES.iter().flat_map(|name| ["-p", name]);
    let mut package = cargo(&["package", "--allow-dirty", "--no-verify", "--target-dir"]);
    run(package.arg(&target).args(names))?;

    let unpacked = target.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked).context("could not remove the packages of an earlier run")?;
    }
    fs::create_dir(&unpacked).context("could not create a folder for the packages")?;
    for name in PACKAGES {
        let packed = target.join(format!("package/{name}-{VERSION}.crate"));
        run(Command::new("tar").arg("-xzf").arg(packed).arg("-C").arg(&unpacked))?;
    }
    let workspace = unpacked.join("Cargo.toml");
    fs::write(&workspace, manifest()).context("could not write the workspace of the packages")?;
    fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    PACKAGES.iter().try_for_each(|name| check_one(&workspace, name))
}

fn check_one(workspace: &Path, name: &str) -> anyhow::Result<()> {
    let mut check = cargo(&["check", "--quiet", "--package", name, "--target-dir"]);
    check.arg(root().join("target")).arg("--manifest-path").arg(workspace);
    run(&mut check).with_context(|| format!("the package {name} does not compile alone"))
}

/// A workspace of the unpacked packages, in which they depend on each other.
fn manifest() -> String {
    let folders = PACKAGES.map(|name| format!("{name}-{VERSION}"));
    let patches = PACKAGES.map(|name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n"));
    // With another level than in our workspace, no dependency would be shared with it.
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = {folders:?}\n\n[patch.crates-io]\n{}\n\
         [profile.dev.package.\"*\"]\nopt-level = 1\n",
        patches.concat(),
    )
}
