//! `optimus dev`: a private Redis server.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::Args;
use optimus_console::Console;
use optimus_core::Client;
use serde_json::json;
use tokio::{process::Command, task::JoinHandle};

use super::console::listen_at;
use crate::{
    arguments::Global,
    failure::{Exit, Failure},
    operator,
    output::Out,
    private_redis::PrivateRedis,
    signals::{Asked, Signals, asked_to_end},
};

/// Run a private Redis server and its web console until Ctrl-C, or for the time of a command.
///
/// Both listen on the loopback interface alone. This needs `redis-server` or `valkey-server`
/// in `PATH`, and no configuration.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// The port [default: a free one].
    #[arg(long)]
    port: Option<u16>,
    /// The port of the console [default: a free one].
    #[arg(long, value_name = "PORT")]
    console_port: Option<u16>,
    /// Keep the tasks in this directory [default: in memory, until the server ends].
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Go on until Ctrl-C once the command has ended, so that its tasks can be looked at.
    #[arg(long)]
    stay: bool,
    /// Run this command with `OPTIMUS_URL` set, and end with it: `optimus dev -- cargo run`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The variable with the namespace.
const NAMESPACE: &str = optimus_core::environment::NAMESPACE;

pub(crate) async fn run(dev: Dev, global: &Global, out: &Out) -> Result<Exit, Failure> {
    if global.url.is_some() {
        return Err(Failure::usage("--url names another store; `dev` starts its own"));
    }
    let mut server = PrivateRedis::start(dev.port, dev.keep.as_deref()).await?;
    let namespace = global.namespace.clone().or_else(|| std::env::var(NAMESPACE).ok());
    let (by, port) = (operator::name(global.operator.as_deref()), dev.console_port.unwrap_or(0));
    let (console, page) = match show(&server, port, namespace.as_deref(), by).await {
        Ok(shown) => shown,
        Err(failure) => {
            server.stop().await;
            return Err(failure);
        }
    };
    let Some((program, arguments)) = dev.command.split_first() else {
        // Signals are heard before anybody is told that it runs.
        let ending = asked_to_end();
        let object = json!({ "url": server.url, "pid": server.pid(), "console": page });
        out.place(&object, &format!("OPTIMUS_URL={}", server.url))?;
        out.hint(&format!("console: {page}"));
        out.hint("Ctrl-C ends the server");
        tokio::select! {
            biased;
            () = ending => {}
            ended = server.ended() => return Err(Failure::new(ended_by_itself(ended))),
        }
        console.abort();
        server.stop().await;
        return Ok(Exit::Done);
    };
    out.hint(&format!("OPTIMUS_URL={}", server.url));
    out.hint(&format!("console: {page}"));
    let mut command = Command::new(program);
    command.args(arguments).env("OPTIMUS_URL", &server.url);
    if let Some(namespace) = &global.namespace {
        command.env("OPTIMUS_NAMESPACE", namespace);
    }
    let code = run_beside(command, &mut server, out).await;
    if let (true, Ok(code)) = (dev.stay, &code) {
        out.hint(&format!("the command has ended with {code}; Ctrl-C ends the server"));
        asked_to_end().await;
    }
    console.abort();
    server.stop().await;
    let code = code.map_err(|problem| {
        Failure::not_found(format!("{} can't be run: {problem}", program.to_string_lossy()))
    })?;
    // The command's own exit code is the answer.
    std::process::exit(code)
}

/// Serves the console of the server. Returns its URL, too.
async fn show(
    server: &PrivateRedis,
    port: u16,
    namespace: Option<&str>,
    by: String,
) -> Result<(JoinHandle<()>, String), Failure> {
    let mut builder = Client::builder(&server.url);
    if let Some(namespace) = namespace.filter(|namespace| !namespace.trim().is_empty()) {
        builder = builder.namespace(namespace.trim());
    }
    let console = Console::new(builder.connect().await?).operator(by);
    let (listener, page) = listen_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok((tokio::spawn(console.serve(listener)?), page))
}

/// Runs a command to its end, and returns its exit code.
async fn run_beside(
    mut command: Command,
    server: &mut PrivateRedis,
    out: &Out,
) -> std::io::Result<i32> {
    let (mut signals, was_in_terminal) = (Signals::hear(), is_in_terminal());
    let mut child = command.spawn()?;
    let mut is_server_there = true;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return Ok(code_of(status?)),
            signal = signals.next() => match signal {
                // A terminal has sent it to the command, too. A second one would let a worker give
                // up its running tasks.
                Asked::Interrupt if is_in_terminal() => {}
                // A terminal that was closed can't be asked.
                Asked::Hangup if was_in_terminal => {}
                signal => forward(&child, signal),
            },
            ended = server.ended(), if is_server_there => {
                is_server_there = false;
                out.warn(&ended_by_itself(ended));
            }
        }
    }
}

fn ended_by_itself(ended: std::io::Result<std::process::ExitStatus>) -> String {
    let status = ended.map(|status| status.to_string());
    let status = status.unwrap_or_else(|problem| problem.to_string());
    format!("the server has ended by itself: {status}")
}

#[cfg(unix)]
fn code_of(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

#[cfg(not(unix))]
fn code_of(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

/// Returns whether a terminal sends its signals to this process and to its command.
#[cfg(unix)]
fn is_in_terminal() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let group = terminal.ok().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group == Some(rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn is_in_terminal() -> bool {
    true
}

/// Sends a signal on to the command.
#[cfg(unix)]
fn forward(child: &tokio::process::Child, signal: Asked) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        Asked::Interrupt => Signal::INT,
        Asked::Hangup | Asked::Terminate => Signal::TERM,
    };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // A command that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
fn forward(_: &tokio::process::Child, _: Asked) {}
