//! libfaketime, which changes the clock of a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// The file of the library for programs with several threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Folders in which systems keep libraries. In the last one, Debian has a folder for each
/// architecture.
const FOLDERS: [&str; 3] = ["/usr/lib64", "/usr/local/lib", "/usr/lib"];

/// The time limit of a test start. A server that reads the time before the library is ready never
/// stops trying.
const TRY_FOR: Duration = Duration::from_secs(5);

/// With this setting, a change of the clock affects only the time of day and not the monotonic
/// clock.
const KEEP_MONOTONIC: [(&str, &str); 2] =
    [("FAKETIME_DONT_FAKE_MONOTONIC", "1"), ("DONT_FAKE_MONOTONIC", "1")];

/// Returns the library to preload, if the system has it.
fn library() -> Option<PathBuf> {
    let inner = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = FOLDERS.iter().map(|folder| Path::new(folder).to_owned()).chain(inner);
    folders.map(|folder| folder.join(LIBRARY)).find(|library| library.is_file())
}

/// Returns whether this system can change the clock of a process.
pub fn has_faketime() -> bool {
    library().is_some()
}

/// Changes the clock of the process that this command starts by `offset`, such as `+1d`, if the
/// library is available.
pub fn fake_clock(command: &mut Command, offset: &str) {
    if let Some(library) = library() {
        command.env("LD_PRELOAD", library).env("FAKETIME", offset).envs(KEEP_MONOTONIC);
    }
}

/// The clock of a server. A test can set it while the server runs.
#[derive(Debug)]
pub(crate) struct Clock {
    preload: String,
    /// The file that the library reads each time the server asks for the time.
    file: PathBuf,
    off_s: i64,
}

impl Clock {
    /// Returns a correct clock, whose file is in that folder, if this server works with the
    /// library.
    pub(crate) fn new(server: &Path, folder: &Path) -> Option<Self> {
        let preload = preload_for(server)?;
        let clock = Self { preload, file: folder.join("clock"), off_s: 0 };
        clock.write().is_ok().then_some(clock)
    }

    pub(crate) fn give_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.preload).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").envs(KEEP_MONOTONIC);
    }

    /// Sets the clock to this many seconds off the machine's clock. Returns by how many seconds
    /// this changes the clock.
    pub(crate) fn set(&mut self, off_s: i64) -> io::Result<i64> {
        let by_s = off_s - std::mem::replace(&mut self.off_s, off_s);
        self.write()?;
        Ok(by_s)
    }

    /// Replaces the file in one step, because the server may read it at any time.
    fn write(&self) -> io::Result<()> {
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, format!("{:+}\n", self.off_s))?;
        fs::rename(fresh, &self.file)
    }
}

/// Returns what to preload so that this server's clock can be set, if the server works with the
/// library. The C library is preloaded, too, for its allocator, because jemalloc reads the time
/// before the library is ready.
fn preload_for(server: &Path) -> Option<String> {
    let preload = format!("{}:libc.so.6", library()?.to_str()?);
    let mut command = Command::new(server);
    command.arg("--version").env("LD_PRELOAD", &preload).envs(KEEP_MONOTONIC);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let (output, (tell, told)) = (child.stdout.take()?, mpsc::channel());
    thread::spawn(move || tell.send(io::read_to_string(output)));
    if told.recv_timeout(TRY_FOR).is_err() {
        child.kill().ok()?;
    }
    child.wait().ok()?.success().then_some(preload)
}
