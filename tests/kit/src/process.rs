//! A program under test that runs as a separate process. A test can read its output, send it
//! signals and kill it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::child::ChildGuard;
use crate::output::Output;

/// How long the last lines of a program that has ended may take.
const LINES_WITHIN: Duration = Duration::from_secs(2);

/// A running program. It is killed when this value is dropped or this process dies.
#[derive(Debug)]
pub struct Proc {
    name: String,
    process: ChildGuard,
    output: Output,
}

/// A program that is not started yet.
#[derive(Debug)]
pub struct ProcBuilder {
    name: String,
    command: Command,
}

impl Proc {
    /// Returns the program at `path`, usually `env!("CARGO_BIN_EXE_…")`.
    pub fn program(path: impl AsRef<Path>) -> ProcBuilder {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ProcBuilder { name, command: ChildGuard::command(path, None) }
    }

    /// Returns an example or a binary of the workspace by its name. Cargo builds it in a folder
    /// next to the running test.
    ///
    /// # Panics
    ///
    /// If no such program exists. The message contains the command that builds it.
    pub fn built(name: &str) -> ProcBuilder {
        let test = std::env::current_exe().expect("the running test has a file");
        // The test is target/<profile>/deps/<test>, and examples and binaries are next to `deps`.
        let profile = test.ancestors().nth(2).expect("cargo puts tests into target/<profile>/deps");
        let places: [PathBuf; 2] = [profile.join("examples").join(name), profile.join(name)];
        let found = places.iter().find(|place| place.is_file());
        Self::program(found.unwrap_or_else(|| {
            let profile = profile.display();
            panic!("no {name} in {profile}: `cargo build --workspace --bins --examples` makes it")
        }))
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns all lines of standard output and standard error so far.
    pub fn lines(&self) -> Vec<String> {
        self.output.lines()
    }

    /// Returns the first line that contains `part`. The line is already printed, or printed
    /// `within` the bound.
    ///
    /// # Panics
    ///
    /// If there is no such line. The message contains the output.
    pub async fn wait_for_line(&self, part: &str, within: Duration) -> String {
        let Ok(line) = timeout(within, self.output.line_with(part)).await else {
            panic!("no {part:?} within {within:?} from {}", self.transcript())
        };
        line
    }

    /// Waits until the program ends by itself, and all its lines are there.
    ///
    /// # Panics
    ///
    /// If the program still runs after the bound. The message contains its output.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let process = &mut self.process;
        let ending = async {
            loop {
                if let Some(status) =
                    process.try_wait().expect("the program is a child of this process")
                {
                    return status;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        let Ok(status) = timeout(within, ending).await else {
            panic!("no end within {within:?} of {}", self.transcript())
        };
        // A child of the program may still hold its output.
        timeout(LINES_WITHIN, self.output.ended()).await.ok();
        status
    }

    /// Kills the program with -9 and waits for its end.
    pub fn kill9(&mut self) -> ExitStatus {
        self.process.kill().expect("a process can kill its child")
    }

    /// Asks the program to end (SIGTERM).
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Sends a signal by its short name, such as `INT`, `STOP` or `CONT`.
    ///
    /// # Panics
    ///
    /// If the program has ended. The message contains its output.
    pub fn signal(&self, name: &str) {
        if let Err(error) = self.process.signal(name) {
            panic!("{error}, {}", self.transcript());
        }
    }

    fn transcript(&self) -> String {
        format!("{}, which printed:\n{}", self.name, self.lines().join("\n"))
    }
}

impl ProcBuilder {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts the program. Its standard input is empty.
    ///
    /// # Panics
    ///
    /// If the system refuses to start a process.
    pub fn start(mut self) -> Proc {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = ChildGuard::spawn(&mut self.command).expect("a process can be started");
        let output = Output::default();
        let (stdout, stderr) = process.output();
        output.collect(stdout.expect("the output is a pipe"));
        output.collect(stderr.expect("the output is a pipe"));
        Proc { name: self.name, process, output }
    }
}
