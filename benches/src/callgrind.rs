//! Counts the instructions of a program with valgrind. The count is almost the same on a busy
//! machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Returns whether valgrind is installed. If it is not, prints a message.
pub(crate) fn is_there() -> bool {
    let mut probe = Command::new("valgrind");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let there = probe.status().is_ok_and(|status| status.success());
    if !there {
        eprintln!("  skipped: valgrind, which counts instructions, is not installed");
    }
    there
}

/// The file with the counts of valgrind.
pub(crate) struct Log(String);

impl Log {
    /// Returns a log in a folder that the caller removes.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("callgrind.log").display().to_string())
    }

    /// Returns the words before a program's command line.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let log = format!("--log-file={}", self.0);
        let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &log];
        words.map(str::to_owned).into()
    }

    /// Does the same, but counts only inside the first function, and not inside the second one that
    /// it calls. So the count does not contain a program's start and its periodic work.
    pub(crate) fn command_line_within(&self, counted: &str, apart: &str) -> Vec<String> {
        let mut words = self.command_line();
        words.push("--collect-atstart=no".to_owned());
        words.extend([counted, apart].map(|name| format!("--toggle-collect={name}")));
        words
    }

    /// Returns the instructions of a program that has ended.
    ///
    /// # Errors
    ///
    /// When valgrind has counted nothing.
    pub(crate) fn instructions(&self) -> anyhow::Result<u64> {
        let text = fs::read_to_string(&self.0).context("valgrind left no log")?;
        let collected = text.lines().find_map(|line| line.split_once("Collected :"));
        let (_, number) =
            collected.with_context(|| format!("valgrind counted nothing:\n{text}"))?;
        let number = number.trim().parse()?;
        ensure!(number > 0, "the functions to be counted have no names in this program");
        Ok(number)
    }
}
