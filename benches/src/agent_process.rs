//! An agent as the harness sees it: a process with its orders and replies.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::Serialize;

use crate::agent::protocol::Reply;

/// The time limit of an order. A longer order is a hang.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running agent. The agent is killed when this value is dropped. It also ends when this process
/// ends, because that closes its input.
pub(crate) struct AgentProcess {
    role: &'static str,
    child: Child,
    /// The input of the agent. It is closed when the agent must end.
    orders: Option<ChildStdin>,
    replies: Receiver<Reply>,
}

impl AgentProcess {
    /// Starts an agent in this role, and waits until it is ready. A launcher is a program that runs
    /// another program, with its arguments. Usually there is no launcher.
    ///
    /// # Errors
    ///
    /// When the agent can't be started.
    pub(crate) fn start(
        launcher: &[String],
        role: &'static str,
        settings: &str,
    ) -> anyhow::Result<Self> {
        let agent = std::env::current_exe().context("the running program has no path")?;
        let mut words = launcher.iter().map(OsStr::new).chain([agent.as_os_str()]);
        let mut command = Command::new(words.next().expect("the program of the agent is one"));
        command
            .args(words)
            .args(["agent", role, settings])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("no agent could be started")?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().context("the output is a pipe")?;
        let (sender, replies) = mpsc::channel();
        // Reads on a separate thread, because only a channel has a wait with a time limit.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line)
                    .unwrap_or_else(|error| Reply::Failed(format!("{line:?}: {error}")));
                if sender.send(reply).is_err() {
                    return;
                }
            }
        });
        let agent = Self { role, child, orders, replies };
        match agent.hear()? {
            Reply::Ready => Ok(agent),
            other => Err(agent.surprised(&other)),
        }
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends an order. [`hear`](Self::hear) later returns its reply.
    ///
    /// # Errors
    ///
    /// When the agent has ended.
    pub(crate) fn tell(&mut self, order: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let orders = self.orders.as_mut().context("the agent was asked to end")?;
        orders.write_all(&line).with_context(|| format!("the {} agent ended", self.role))
    }

    /// Returns the reply to the oldest unanswered order.
    ///
    /// # Errors
    ///
    /// When the order failed, or no reply arrives.
    pub(crate) fn hear(&self) -> anyhow::Result<Reply> {
        let role = self.role;
        match self.replies.recv_timeout(PATIENCE) {
            Ok(Reply::Failed(why)) => bail!("the {role} agent: {why}"),
            Ok(reply) => Ok(reply),
            Err(problem) => Err(problem).with_context(|| format!("no reply of the {role} agent")),
        }
    }

    /// Lets the agent end, so that its launcher writes its results.
    ///
    /// # Errors
    ///
    /// When the agent does not end with success.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.orders = None;
        let status = self.child.wait()?;
        ensure!(status.success(), "the {} agent ended with {status}", self.role);
        Ok(())
    }

    /// Returns the error of a reply that does not match its order.
    pub(crate) fn surprised(&self, reply: &Reply) -> anyhow::Error {
        anyhow!("the {} agent sent a wrong reply: {reply:?}", self.role)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // These calls fail only if the agent has ended, which is the desired state.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
