//! Writes a process' part of the history, and reads all parts: [`HistoryLog`].

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;

use rustix::time::{ClockId, clock_gettime};

use super::{Event, What};

/// What the files of a history end in.
const EXTENSION: &str = "history";

/// The machine's monotonic clock in ns: the same for all processes, and never set.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (s, ns) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    s.unwrap_or(0) * 1_000_000_000 + ns.unwrap_or(0)
}

/// This process' file in a folder of histories.
#[derive(Debug)]
pub struct HistoryLog {
    file: File,
}

impl HistoryLog {
    /// Opens the file of this process.
    ///
    /// # Errors
    ///
    /// When the folder can't be written to.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!("{}.{EXTENSION}", process::id()));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Writes down what happens now.
    ///
    /// # Panics
    ///
    /// If the disk is full: a history with holes proves nothing.
    pub fn write(&self, what: What) {
        self.write_all([what]);
    }

    /// Writes down several things at once, with one write.
    ///
    /// # Panics
    ///
    /// As [`write`](Self::write).
    pub fn write_all(&self, all: impl IntoIterator<Item = What>) {
        let (at, pid) = (now_ns(), process::id());
        let mut lines = String::new();
        for what in all {
            writeln!(lines, "{}", Event { at, pid, what }).expect("a string takes everything");
        }
        (&self.file).write_all(lines.as_bytes()).expect("the history can be written");
    }
}

/// Calls `take` with every event of all files in a folder, file by file.
///
/// # Errors
///
/// When a file can't be read, or a line is no event. A last line without its end is passed over:
/// its writer was killed.
pub fn read_history(folder: &Path, mut take: impl FnMut(Event)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        for line in fs::read_to_string(&path)?.split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else { continue };
            take(line.parse().map_err(io::Error::other)?);
        }
    }
    Ok(())
}
