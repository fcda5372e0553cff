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
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
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
