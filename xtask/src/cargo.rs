//! Runs programs in the root of the repository.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the repository").to_owned()
}

/// Returns a cargo command that runs in the root, with the same cargo that runs this program.
///
/// Cargo describes this package to this program in variables. The command does not inherit them:
/// build scripts of dependencies watch some of them, so a cargo from a shell would build these
/// dependencies again, and all that need them.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if is_of_this_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns a command that runs a program of the workspace in a release build. The arguments of the
/// program follow.
///
/// It names no package: cargo then chooses the features of all packages together, so one build of
/// the dependencies serves all programs. A named package would bring its own choice of features.
pub(crate) fn release_program(name: &str) -> Command {
    cargo(&["run", "--release", "--quiet", "--bin", name, "--"])
}

fn is_of_this_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// Runs a command. Its output goes to the output of this program.
///
/// # Errors
///
/// When the command can't be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{name} could not be started"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_command_does_not_inherit_the_description_of_this_package() {
        let command = cargo(&["test"]);
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();

        assert!(removed.contains(&"CARGO_MANIFEST_DIR".as_ref()), "{removed:?}");
        assert!(removed.contains(&"CARGO_PKG_NAME".as_ref()), "{removed:?}");
    }
}
