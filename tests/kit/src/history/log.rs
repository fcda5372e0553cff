//! Writes the part of the history of one process, and reads all parts: [`HistoryLog`].

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;

use rustix::time::{ClockId, clock_gettime};

use super::{Event, What};

/// The extension of history files.
const EXTENSION: &str = "history";

/// Returns the machine's monotonic clock in ns. This clock is the same for all processes, and is
/// never set.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (s, ns) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    s.unwrap_or(0) * 1_000_000_000 + ns.unwrap_or(0)
}

/// The file of this process in a folder of histories.
#[derive(Debug)]
pub struct HistoryLog {
    file: File,
}

impl HistoryLog {
    /// Opens the file of this process.
    ///
    /// # Errors
    ///
    /// When the folder is not writable.
    pub fn open(folder: &Path) -> io::Result<Self> {
        // The system may give the id of a killed process, whose last line may be torn, to this one.
        let path = folder.join(format!("{}-{}.{EXTENSION}", process::id(), now_ns()));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Records an event with the current time.
    ///
    /// # Panics
    ///
    /// If the disk is full, because a history with holes proves nothing.
    pub fn write(&self, what: What) {
        self.write_all([what]);
    }

    /// Records several events with one write.
    ///
    /// # Panics
    ///
    /// In the same cases as [`write`](Self::write).
    pub fn write_all(&self, all: impl IntoIterator<Item = What>) {
        let (at, pid) = (now_ns(), process::id());
        let mut lines = String::new();
        for what in all {
            writeln!(lines, "{}", Event { at, pid, what }).expect("writing to a string can't fail");
        }
        (&self.file).write_all(lines.as_bytes()).expect("the history can be written");
    }
}

/// Calls `take` with every event of all files in a folder, file by file.
///
/// # Errors
///
/// When a file cannot be read, or a line is not an event. A last line without its end is skipped,
/// because the process was killed while it wrote that line.
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
