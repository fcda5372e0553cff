//! The processes of the agents, and the actions on them: [`Processes`].

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use optimus_testkit::history::{HistoryLog, What, now_ns};
use optimus_testkit::{ChildGuard, fake_clock};

use crate::agent::{Role, Settings};

/// The file for the output of agents, which shows why they ended.
const OUTPUT: &str = "agents.log";
/// The time limit of an end. An agent that takes longer after it is asked to end hangs.
const LEAVE_WITHIN: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// A place in which one agent runs at a time.
struct Place {
    settings: Settings,
    agent: Option<ChildGuard>,
    /// Whether the agent has done all its work.
    is_done: bool,
}

/// All agents: the workers first, then the clients.
pub(crate) struct Processes {
    folder: PathBuf,
    workers: Vec<Place>,
    clients: Vec<Place>,
}

/// The name of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Worker(usize),
    Client(usize),
}

impl Processes {
    /// Starts agents with these settings.
    ///
    /// # Errors
    ///
    /// When a process can't be started.
    pub(crate) fn start(
        folder: &Path,
        workers: Vec<Settings>,
        clients: Vec<Settings>,
    ) -> anyhow::Result<Self> {
        let places = |all: Vec<Settings>| {
            all.into_iter().map(|settings| Place { settings, agent: None, is_done: false })
        };
        let (workers, clients) = (places(workers).collect(), places(clients).collect());
        let mut processes = Self { folder: folder.to_owned(), workers, clients };
        processes.tend()?;
        Ok(processes)
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Returns whether every client has submitted all its tasks.
    pub(crate) fn has_submitted_all(&self) -> bool {
        self.clients.iter().all(|place| place.is_done)
    }

    /// Returns the process in that place, if it runs.
    pub(crate) fn pid(&self, who: Who) -> Option<u32> {
        self.place(who).agent.as_ref().map(ChildGuard::pid)
    }

    /// Starts the agents that do not run. An agent ends by itself only if Redis is not available at
    /// its start, or if its work is done.
    ///
    /// # Errors
    ///
    /// When a process can't be started.
    pub(crate) fn tend(&mut self) -> anyhow::Result<()> {
        let folder = self.folder.clone();
        for place in self.workers.iter_mut().chain(&mut self.clients) {
            if let Some(agent) = &mut place.agent
                && let Some(status) = agent.try_wait()?
            {
                place.agent = None;
                place.is_done = status.success();
            }
            if place.agent.is_none() && !place.is_done {
                place.agent = Some(start(&folder, &place.settings)?);
            }
        }
        Ok(())
    }

    /// Kills the agent with -9. [`tend`](Self::tend) starts another one in its place.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub(crate) fn kill(&mut self, who: Who, log: &HistoryLog) -> anyhow::Result<bool> {
        let place = self.place_mut(who);
        let Some(mut agent) = place.agent.take() else { return Ok(false) };
        agent.kill()?;
        log.write(What::Killed { victim: agent.pid() });
        if let Role::Client { first, count, .. } = &mut place.settings.role {
            // The next process in this place must not use the same numbers.
            *first += NUMBERS_EACH;
            place.is_done = count.is_some();
        }
        Ok(true)
    }

    /// Sends a signal to the process with this id, if it is still in that place.
    pub(crate) fn signal(&self, who: Who, pid: u32, name: &str) -> bool {
        let agent = self.place(who).agent.as_ref().filter(|agent| agent.pid() == pid);
        agent.is_some_and(|agent| agent.signal(name).is_ok())
    }

    /// Asks an agent to end (SIGTERM). Returns its process, so that the caller can [wait for
    /// it](leave).
    pub(crate) fn dismiss(&mut self, who: Who) -> Option<ChildGuard> {
        let agent = self.place_mut(who).agent.take()?;
        // This fails only if the process has ended, which is the desired state.
        let _ = agent.signal("TERM");
        Some(agent)
    }

    /// Asks all clients to end, and waits until they have ended.
    ///
    /// # Errors
    ///
    /// When a client hangs.
    pub(crate) fn dismiss_clients(&mut self) -> anyhow::Result<()> {
        for client in 0..self.clients.len() {
            self.clients[client].is_done = true;
            if let Some(agent) = self.dismiss(Who::Client(client)) {
                await_end(agent).context("a client")?;
            }
        }
        Ok(())
    }

    fn place(&self, who: Who) -> &Place {
        match who {
            Who::Worker(worker) => &self.workers[worker],
            Who::Client(client) => &self.clients[client],
        }
    }

    fn place_mut(&mut self, who: Who) -> &mut Place {
        match who {
            Who::Worker(worker) => &mut self.workers[worker],
            Who::Client(client) => &mut self.clients[client],
        }
    }
}

/// The range of task numbers of each process of a client.
pub(crate) const NUMBERS_EACH: u64 = 1 << 32;

/// Waits until a worker that was asked to end has ended.
///
/// # Errors
///
/// When the worker hangs.
pub(crate) fn leave(worker: ChildGuard, asked: u64, log: &HistoryLog) -> anyhow::Result<()> {
    let pid = worker.pid();
    await_end(worker).context("a worker")?;
    log.write(What::Left { worker: pid, since: asked.min(now_ns()) });
    Ok(())
}

fn await_end(mut agent: ChildGuard) -> anyhow::Result<()> {
    let begun = Instant::now();
    while agent.try_wait()?.is_none() {
        ensure!(begun.elapsed() < LEAVE_WITHIN, "the worker was asked to end and still runs");
        std::thread::sleep(CHECK_EVERY);
    }
    Ok(())
}

fn start(folder: &Path, settings: &Settings) -> anyhow::Result<ChildGuard> {
    let program = std::env::current_exe().context("the running program has no path")?;
    let output = OpenOptions::new().create(true).append(true).open(folder.join(OUTPUT))?;
    let mut command = ChildGuard::command(program, None);
    command.arg("agent").arg(serde_json::to_string(settings)?);
    if let Some(offset) = &settings.clock {
        fake_clock(&mut command, offset);
    }
    command.stdout(Stdio::null()).stderr(output);
    ChildGuard::spawn(&mut command).context("no agent could be started")
}
