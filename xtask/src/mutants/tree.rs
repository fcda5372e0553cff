//! A copy of the repository in which bugs are planted: [`Tree`].

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use anyhow::{Context as _, ensure};
use optimus_testkit::Mutant;

use super::planted::{apply, planted, write};
use crate::cargo::{cargo, root};

/// A copy of the files that git knows. Its place is fixed, so that a build compiles only what the
/// mutant changes.
pub(crate) struct Tree {
    home: PathBuf,
    /// The files that differ from the repository.
    planted: BTreeMap<PathBuf, String>,
}

impl Tree {
    /// Copies the current working tree, with all mutants of Rust code in it.
    pub(crate) fn make(mutants: &[Mutant]) -> anyhow::Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let home = root().join(target).join("mutants");
        let planted = planted(mutants, &home.join("patched"))?;
        let tree = Self { home, planted };
        fs::create_dir_all(tree.folder())?;
        fs::create_dir_all(tree.logs())?;
        tree.restore()?;
        Ok(tree)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.home.join("tree")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.home.join("logs")
    }

    /// Returns a cargo command that runs in the copy. Its programs read a script when they
    /// first need it, so a mutant of a script needs no build, either.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = cargo(args);
        command.current_dir(self.folder()).env("CARGO_TARGET_DIR", self.home.join("build"));
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{flags} --cfg scripts_from_files"));
        command
    }

    /// Plants a bug of scripts.
    pub(crate) fn apply(&self, mutant: &Mutant) -> anyhow::Result<()> {
        apply(mutant, &self.folder())
    }

    /// Gives each file the content that it has without a bug of scripts. A file that is already
    /// equal is not written.
    pub(crate) fn restore(&self) -> anyhow::Result<()> {
        let tracked = tracked()?;
        for path in &tracked {
            let (from, to) = (root().join(path), self.folder().join(path));
            let planted = self.planted.get(path);
            let copied = planted.map_or_else(|| mirror(&from, &to), |text| write(text, &to));
            copied.with_context(|| format!("{} could not be copied", from.display()))?;
        }
        let tracked: HashSet<PathBuf> = tracked.into_iter().collect();
        remove_others(&self.folder(), Path::new(""), &tracked)?;
        Ok(())
    }
}

/// Returns the files that git tracks or would add.
fn tracked() -> anyhow::Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(root()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "git ls-files ended with {}", output.status);
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let paths = names.map(|name| PathBuf::from(OsStr::from_bytes(name)));
    // Git still lists files whose deletion is not yet committed.
    Ok(paths.filter(|path| root().join(path).symlink_metadata().is_ok()).collect())
}

fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if from.symlink_metadata()?.is_symlink() {
        let target = fs::read_link(from)?;
        if fs::read_link(to).is_ok_and(|found| found == target) {
            return Ok(());
        }
        return symlink(target, to);
    }
    let wanted = fs::read(from)?;
    if fs::read(to).is_ok_and(|found| found == wanted) { Ok(()) } else { fs::write(to, wanted) }
}

/// Removes the files below a folder of the tree that the repository does not have.
fn remove_others(tree: &Path, folder: &Path, tracked: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(tree.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(tree, &path, tracked)?;
        } else if !tracked.contains(&path) {
            fs::remove_file(tree.join(path))?;
        }
    }
    Ok(())
}
