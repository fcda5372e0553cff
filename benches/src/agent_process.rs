//! An agent as the harness holds it: a process with its orders and answers.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::Serialize;

use crate::agent::protocol::Reply;

/// No order takes longer; an agent that does hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running agent. Dropping it kills it; it also ends with this process, whose end closes its
/// input.
pub(crate) struct AgentProcess {
    role: &'static str,
    child: Child,
    /// Closed when it shall end.
    orders: Option<ChildStdin>,
    replies: Receiver<Reply>,
}

impl AgentProcess {
    /// Starts an agent in this role, and waits until it takes orders. A launcher is a program that
    /// runs programs, with its arguments; mostly there is none.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn start(
        launcher: &[String],
        role: &'static str,
        settings: &str,
    ) -> anyhow::Result<Self> {
        let agent = std::env::current_exe().context("the running program has no path")?;
        let mut words = launcher.iter().map(OsStr::new).chain([agent.as_os_str()]);
        let mut command = Command::new(words.next().expect("the agent's own is one"));
        command
            .args(words)
            .args(["agent", role, settings])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("no agent could be started")?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().context("its output was piped")?;
        let (sender, replies) = mpsc::channel();
        // On a thread of its own, because only a channel can be waited on with a limit.
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

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order, whose answer is to be [heard](Self::hear) later.
    ///
    /// # Errors
    /// When the agent has ended.
    pub(crate) fn tell(&mut self, order: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let orders = self.orders.as_mut().context("the agent was told to leave")?;
        orders.write_all(&line).with_context(|| format!("the {} agent ended", self.role))
    }

    /// The answer to the oldest order without one.
    ///
    /// # Errors
    /// When the order failed, or no answer comes.
    pub(crate) fn hear(&self) -> anyhow::Result<Reply> {
        let role = self.role;
        match self.replies.recv_timeout(PATIENCE) {
            Ok(Reply::Failed(why)) => bail!("the {role} agent: {why}"),
            Ok(reply) => Ok(reply),
            Err(problem) => Err(problem).with_context(|| format!("no answer of the {role} agent")),
        }
    }

    /// Lets the agent end, which writes what its launcher writes at the end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.orders = None;
        let status = self.child.wait()?;
        ensure!(status.success(), "the {} agent ended with {status}", self.role);
        Ok(())
    }

    /// The error of an answer that does not fit its order.
    pub(crate) fn surprised(&self, reply: &Reply) -> anyhow::Error {
        anyhow!("the {} agent answered out of turn: {reply:?}", self.role)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // Either fails only if it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
