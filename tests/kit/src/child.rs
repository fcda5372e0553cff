//! A child process that ends with its parent, however the parent ends.
//!
//! A test may be killed with -9, and then no destructor runs. So the child starts through a shell
//! that leaves a watcher behind. The watcher reads a pipe whose other end only the parent holds,
//! and kills the child when that end closes. The shell then *becomes* the program (`exec`), so the
//! child's pid is the program's pid and no process is between them.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// The script of the shell. `$1` is a directory to remove after an orphan's death ('' for none),
/// and the rest is the program. The watcher closes the program's output, because readers of that
/// output wait for its end.
const SCRIPT: &str = r#"
leftovers=$1
shift
exec 3<&0
{
    read -r word
    if [ "$word" != released ]; then
        kill -s KILL $$
        [ -z "$leftovers" ] || rm -rf -- "$leftovers"
    fi
} <&3 3<&- >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"#;

/// A running child. It dies with this process, and when this value is dropped.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
    watcher: ChildStdin,
}

impl ChildGuard {
    /// Returns the command that runs `program` with a watcher. Add arguments, environment and
    /// output as to any other command, then [`spawn`](Self::spawn) it. `leftovers` is a directory
    /// to remove if this process dies first.
    pub fn command(program: impl AsRef<OsStr>, leftovers: Option<&Path>) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "child"]);
        command.arg(leftovers.unwrap_or(Path::new(""))).arg(program);
        command
    }

    /// Starts a command made by [`command`](Self::command).
    ///
    /// # Errors
    ///
    /// When no shell can be started. A missing program shows as exit status 127.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        // The child has its own process group, so Ctrl-C in a terminal reaches only the parent. The
        // processes then die in the order described above.
        let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let watcher = child.stdin.take().expect("stdin is a pipe");
        Ok(Self { child, watcher })
    }

    /// Returns the process id of the program itself.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the program's output, if the command piped it and no earlier call took it.
    pub fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Returns how the program ended, or `None` while it runs.
    ///
    /// # Errors
    ///
    /// When the operating system reports an error.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.release();
        }
        Ok(status)
    }

    /// Kills the program with -9 and waits for its end.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        // This comes before the wait that frees the pid, because the watcher must not kill a later
        // process with the same pid.
        self.release();
        self.child.wait()
    }

    /// Sends a signal by its short name, such as `TERM` or `STOP`.
    ///
    /// # Errors
    ///
    /// When the program has ended or the name is unknown.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        // This uses the shell's builtin `kill`, because small systems have no separate program.
        let kill = r#"kill -s "$1" "$2""#;
        let pid = self.pid().to_string();
        let status = Command::new("sh").args(["-c", kill, "kill", name, &pid]).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("SIG{name} could not be sent to process {pid}")))
        }
    }

    fn release(&mut self) {
        // This fails if the watcher is already gone, which is the desired state.
        let _ = self.watcher.write_all(b"released\n");
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
