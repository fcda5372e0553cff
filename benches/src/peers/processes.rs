//! The processes of runners, and their messages.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};

use super::program_error::complaint;
use super::runner_messages::{Heard, tallied};
use crate::executions::Executions;
use crate::process::tree;

/// The time limit for the start and the end of a runner, and for the silence of a worker with tasks
/// to run.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runners with one common job. Runners end when this value is dropped or this process dies,
/// because both close their input.
pub(super) struct Processes {
    members: Vec<Member>,
    heard: Receiver<(usize, Heard)>,
    log: PathBuf,
    /// The version of the library.
    pub(super) version: String,
}

struct Member {
    child: Child,
    orders: Option<ChildStdin>,
    ran: Ran,
}

/// The executions of a worker so far, in ns of the clock that all processes share.
#[derive(Clone, Copy, Default)]
struct Ran {
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Processes {
    /// Starts these runners and waits until all are ready. Their errors go to `log`.
    ///
    /// # Errors
    ///
    /// When a runner can't be started, or ends by itself.
    pub(super) fn start(commands: Vec<Command>, log: &Path) -> anyhow::Result<Self> {
        let complaints = File::create(log).with_context(|| log.display().to_string())?;
        let (sender, heard) = mpsc::channel();
        let members = commands.into_iter().enumerate().map(|(index, command)| {
            Member::start(command, complaints.try_clone()?, index, sender.clone())
        });
        let members = members.collect::<anyhow::Result<Vec<_>>>()?;
        let mut processes = Self { members, heard, log: log.to_owned(), version: String::new() };
        let until = Instant::now() + PATIENCE;
        for _ in 0..processes.members.len() {
            match processes.hear(until)? {
                (_, Heard::Ready { version }) => processes.version = version,
                (_, other) => bail!("the runner sent {other:?} and not that it is ready"),
            }
        }
        Ok(processes)
    }

    /// Sends `go` to all runners.
    ///
    /// # Errors
    ///
    /// When a runner has ended.
    pub(super) fn go(&mut self) -> anyhow::Result<()> {
        for member in &mut self.members {
            let orders = member.orders.as_mut().context("the runner has received `go` before")?;
            orders.write_all(b"go\n").context("the runner ended before it began")?;
        }
        Ok(())
    }

    /// Waits until a client has submitted all tasks. Returns its time.
    ///
    /// # Errors
    ///
    /// When the client fails, or takes longer than `within`.
    pub(super) fn done(&mut self, within: Duration) -> anyhow::Result<Duration> {
        match self.hear(Instant::now() + within)? {
            (_, Heard::Done { took }) => Ok(took),
            (_, other) => bail!("the runner sent {other:?} and not the end of the submits"),
        }
    }

    /// Waits until workers have run this many tasks. Returns the time from the first to the last
    /// task.
    ///
    /// # Errors
    ///
    /// When a worker fails, when the workers take longer than `within`, or when no task runs for a
    /// while.
    pub(super) fn ran(&mut self, tasks: u64, within: Duration) -> anyhow::Result<Duration> {
        let until = Instant::now() + within;
        while self.total() < tasks {
            let (index, heard) = self
                .hear(until.min(Instant::now() + PATIENCE))
                .with_context(|| format!("{} of {tasks} tasks ran", self.total()))?;
            let Heard::Ran { count, first_ns, last_ns } = heard else {
                bail!("the runner sent {heard:?} and not executions");
            };
            self.members[index].ran = Ran { count, first_ns, last_ns };
        }
        let ran = self.members.iter().map(|member| member.ran).filter(|ran| ran.count > 0);
        let first = ran.clone().map(|ran| ran.first_ns).min().unwrap_or(0);
        let last = ran.map(|ran| ran.last_ns).max().unwrap_or(0);
        Ok(Duration::from_nanos(last.saturating_sub(first)))
    }

    /// Returns the processes of the runners, with all children.
    pub(super) fn pids(&self) -> Vec<u32> {
        let roots: Vec<u32> = self.members.iter().map(|member| member.child.id()).collect();
        tree(&roots)
    }

    /// Ends workers, and adds up their executions.
    ///
    /// # Errors
    ///
    /// When a worker does not report its executions.
    pub(super) fn release(mut self) -> anyhow::Result<Executions> {
        for member in &mut self.members {
            member.orders = None;
        }
        let until = Instant::now() + PATIENCE;
        let mut waits = vec![Vec::new(); self.members.len()];
        let mut executions = Executions::default();
        let mut silent = self.members.len();
        while silent > 0 {
            match self.hear(until).context("the worker did not report its executions")? {
                (index, Heard::Waited { us }) => waits[index] = us,
                (index, Heard::Seen { runs }) => {
                    executions.add(tallied(&runs, std::mem::take(&mut waits[index])));
                    silent -= 1;
                }
                // This is an earlier count that was still in the pipe.
                (_, Heard::Ran { .. }) => {}
                (_, other) => bail!("the runner sent {other:?} at the end"),
            }
        }
        Ok(executions)
    }

    fn total(&self) -> u64 {
        self.members.iter().map(|member| member.ran.count).sum()
    }

    /// Returns the next line of any of the runners.
    fn hear(&mut self, until: Instant) -> anyhow::Result<(usize, Heard)> {
        const LOOK_EVERY: Duration = Duration::from_millis(500);
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            if let Ok(heard) = self.heard.recv_timeout(rest.min(LOOK_EVERY)) {
                return Ok(heard);
            }
            self.ensure_alive()?;
            ensure!(Instant::now() < until, "the runner sent nothing in time{}", self.complaint());
        }
    }

    fn ensure_alive(&mut self) -> anyhow::Result<()> {
        for member in &mut self.members {
            let ended = member.child.try_wait()?.filter(|_| member.orders.is_some());
            if let Some(status) = ended {
                return Err(anyhow!("the runner ended with {status}{}", self.complaint()));
            }
        }
        Ok(())
    }

    /// Returns the errors of the runner, as the end of a sentence.
    fn complaint(&self) -> String {
        complaint(&self.log).map_or_else(String::new, |line| format!(": {line}"))
    }
}

impl Member {
    fn start(
        mut command: Command,
        complaints: File,
        index: usize,
        heard: Sender<(usize, Heard)>,
    ) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("{name} can't be started"))?;
        let orders = Some(child.stdin.take().context("the input is a pipe")?);
        let stdout = child.stdout.take().context("the output is a pipe")?;
        let member = Self { child, orders, ran: Ran::default() };
        // Reads on a separate thread, because only a channel has a wait with a time limit. The
        // thread reads to the end, so that the library never blocks on its output.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(line) = Heard::parse(&line) {
                    // When runners are ended, there is no receiver.
                    let _ = heard.send((index, line));
                }
            }
        });
        Ok(member)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.orders = None;
        // These calls fail only if the runner has ended, which is the desired state.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns runners that run shell commands, and the log of their errors.
    fn start(scripts: &[&str]) -> anyhow::Result<Processes> {
        let folder = tempfile::tempdir()?;
        let commands = scripts.iter().map(|script| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            shell
        });
        Processes::start(commands.collect(), &folder.path().join("log"))
    }

    #[test]
    fn the_executions_of_two_workers_are_added_up() {
        let mut processes = start(&[
            "echo bench ready 1.2; read go; echo bench ran 2 500 900; read end
             echo bench waited 7000; echo bench seen 0100",
            "echo hello; echo bench ready 1.2; read go; echo bench ran 1 300 700; read end
             echo bench seen 0001",
        ])
        .unwrap();
        assert_eq!((processes.version.as_str(), processes.pids().len()), ("1.2", 2));
        processes.go().unwrap();
        assert_eq!(processes.ran(3, PATIENCE).unwrap(), Duration::from_nanos(600));
        let executions = processes.release().unwrap();
        executions.ensure_exactly(2).unwrap();
        assert_eq!(executions.latencies_us, [7.0]);
    }

    #[test]
    fn a_runner_that_ends_is_distinguished_from_one_that_works() {
        let refused = start(&["exit 3"]).err().unwrap().to_string();
        assert!(refused.contains("exit status: 3"), "{refused}");
        let mut processes = start(&["echo bench ready 1; read go; exit 4"]).unwrap();
        processes.go().unwrap();
        let ended = processes.done(PATIENCE).unwrap_err().to_string();
        assert!(ended.contains("exit status: 4"), "{ended}");
    }
}
