//! A child process that ends with its parent, however the parent ends.
//!
//! A test may be killed with -9, and then no destructor runs. So the child is started through
//! a shell that leaves a watcher behind: it reads a pipe of which only the parent holds the
//! other end, and kills the child when that end closes. The shell then *becomes* the program
//! (`exec`), so the child's pid is the program's and there is nothing in between.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// `$1` is a directory to remove after an orphan's death ('' for none), the rest the program.
/// The watcher lets go of the program's output, whose readers wait for its end.
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

/// A running child that dies with this process and on drop.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
    watcher: ChildStdin,
}

impl ChildGuard {
    /// The command that runs `program` tethered: add its arguments, environment and output
    /// as to any other, then [`spawn`](Self::spawn) it. `leftovers` is a directory to remove
    /// if this process dies first.
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
    /// When no shell can be started. A program that is missing is seen as exit status 127.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        // In a group of its own, Ctrl-C in a terminal reaches the parent alone, and the order
        // of dying stays the one described above.
        let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let watcher = child.stdin.take().expect("stdin was asked to be a pipe");
        Ok(Self { child, watcher })
    }

    /// The process id of the program itself.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the program prints, if the command piped it and nobody took it before.
    pub fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// How the program ended, or `None` while it runs.
    ///
    /// # Errors
    ///
    /// When the operating system refuses to say.
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
        // Before the pid is given back by waiting: the watcher must not kill its next owner.
        self.release();
        self.child.wait()
    }

    /// Sends a signal by its short name, such as `TERM` or `STOP`.
    ///
    /// # Errors
    ///
    /// When the program has ended or the name is unknown.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        // The shell's own `kill`: the separate program is missing on small systems.
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
        // It fails when the watcher is gone, which is what it asks for.
        let _ = self.watcher.write_all(b"released\n");
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
