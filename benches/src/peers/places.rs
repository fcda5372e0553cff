//! The folders of the runners and of their installed dependencies.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The two folders of the peers.
#[derive(Debug)]
pub(super) struct Places {
    /// `benches/peers`, with the runners.
    pub(super) runners: PathBuf,
    /// `peers` in cargo's target directory, with all installed dependencies.
    pub(super) home: PathBuf,
}

impl Places {
    /// Finds the folders, and creates the second one.
    ///
    /// # Errors
    ///
    /// When the second cannot be created.
    pub(super) fn find() -> anyhow::Result<Self> {
        let program = env::current_exe().context("the running program has no path")?;
        // target/<profile>/optimus-bench
        let target = program.ancestors().nth(2).context("it is not in cargo's target directory")?;
        let home = target.join("peers");
        fs::create_dir_all(&home)
            .with_context(|| format!("{} cannot be created", home.display()))?;
        let runners = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        Ok(Self { runners, home })
    }

    /// The log of a runner's errors.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.log"))
    }

    /// A virtual environment of Python.
    pub(super) fn venv(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// The packages of Node.
    pub(super) fn node(&self) -> PathBuf {
        self.home.join("bullmq")
    }

    /// The target directory of the runners in Rust.
    pub(super) fn cargo(&self) -> PathBuf {
        self.home.join("cargo")
    }
}
