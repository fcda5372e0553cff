//! The folders of the runners and of their installed dependencies.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The two folders of the peers.
#[derive(Debug)]
pub(super) struct Places {
    /// The folder `benches/peers`, with the runners.
    pub(super) runners: PathBuf,
    /// The folder `peers` in cargo's target directory, with all installed dependencies.
    pub(super) home: PathBuf,
}

impl Places {
    /// Finds the folders, and creates the second one.
    ///
    /// # Errors
    ///
    /// When the second folder can't be created.
    pub(super) fn find() -> anyhow::Result<Self> {
        let program = env::current_exe().context("the running program has no path")?;
        // The path is target/<profile>/optimus-bench.
        let target = program
            .ancestors()
            .nth(2)
            .context("the running program is not in cargo's target directory")?;
        let home = target.join("peers");
        fs::create_dir_all(&home)
            .with_context(|| format!("{} can't be created", home.display()))?;
        let runners = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        Ok(Self { runners, home })
    }

    /// Returns the log of a runner's errors.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.log"))
    }

    /// Returns the folder of a virtual environment of Python.
    pub(super) fn venv(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Returns the folder of the packages of Node.
    pub(super) fn node(&self) -> PathBuf {
        self.home.join("bullmq")
    }

    /// Returns the target directory of the runners in Rust.
    pub(super) fn cargo(&self) -> PathBuf {
        self.home.join("cargo")
    }
}
