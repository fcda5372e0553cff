//! `optimus console`: the web console.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use optimus_console::{
    Auth, Console, ConsoleError, ConsoleListener, Identity, Payloads, Role, Secrets,
};
use optimus_core::QueueName;
use optimus_metrics::parse_address;
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    session::Session,
    signals::asked_to_end,
};

/// Serve the web console until Ctrl-C.
///
/// Without `--tokens`, it has no authentication, and so it listens only on this machine: at a
/// loopback address, or a unix socket. Put a proxy with TLS before one that others can reach.
#[derive(Debug, Args)]
pub(crate) struct ConsoleArguments {
    /// Where to listen. An address that other machines can reach needs --tokens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9188",
          value_parser = parse_address)]
    listen: SocketAddr,
    /// Listen at this unix socket instead, which only you can open.
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    socket: Option<PathBuf>,
    /// A file with who may sign in: on each line a name, a role (`viewer`, `operator` or `admin`),
    /// the SHA-256 of a token (`printf %s TOKEN | sha256sum | cut -c-64`), and, if not all, the
    /// queues with commas between them (`mail,tenant-*`).
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Ask for a name and a password, which each request then has, instead of a token.
    #[arg(long, requires = "tokens")]
    basic: bool,
    /// How arguments and results are shown: `hidden`, `redacted` or `full`, or `admin=full` for one
    /// role; may be repeated [default: redacted without --tokens, else hidden].
    #[arg(long, value_name = "[ROLE=]HOW", value_parser = payloads)]
    payloads: Vec<(Option<Role>, Payloads)>,
    /// Answer only requests to this host, such as `tasks.example.com`; may be repeated.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Believe the `X-Forwarded-Prefix` of a proxy that serves the console under a path.
    #[arg(long, value_name = "WHOM", default_value = "nobody")]
    trust_prefix: TrustPrefix,
}

/// Whose `X-Forwarded-Prefix` is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TrustPrefix {
    Nobody,
    /// The proxy that sends all requests.
    Proxy,
}

/// Reads `redacted` or `admin=full`.
fn payloads(text: &str) -> Result<(Option<Role>, Payloads), String> {
    let (role, mode) = match text.split_once('=') {
        Some((role, mode)) => (Some(role), mode),
        None => (None, text),
    };
    let wrong = || format!("{text:?} is not hidden, redacted, full, or such as admin=full");
    let mode = Payloads::from_word(mode).ok_or_else(wrong)?;
    let role = role.map(|role| Role::from_word(role).ok_or_else(wrong)).transpose()?;
    Ok((role, mode))
}

pub(crate) async fn run(command: ConsoleArguments, session: &Session<'_>) -> Result<Exit, Failure> {
    // Signals are heard before anybody is told that it runs.
    tokio::select! {
        biased;
        () = asked_to_end() => Ok(Exit::Done),
        failed = serve(command, session) => failed,
    }
}

async fn serve(command: ConsoleArguments, session: &Session<'_>) -> Result<Exit, Failure> {
    let mut console = Console::new(session.client.clone()).operator(session.by.clone());
    if let Some(file) = &command.tokens {
        let secrets = secrets(file)?;
        let auth = if command.basic { Auth::Basic(secrets) } else { Auth::Token(secrets) };
        console = console.auth(auth);
    }
    for (role, mode) in command.payloads {
        let all = [Role::Viewer, Role::Operator, Role::Admin];
        let roles = all.into_iter().filter(|one| role.is_none_or(|role| role == *one));
        console = roles.fold(console, |console, role| console.payloads(role, mode));
    }
    console = command.hosts.into_iter().fold(console, Console::host);
    if command.trust_prefix == TrustPrefix::Proxy {
        console = console.trust_forwarded_prefix();
    }
    let (listener, place) = listen(command.listen, command.socket.as_deref())?;
    let serving = console.serve(listener)?;
    // If Redis can't be used, a supervisor hears it now.
    session.now().await?;
    session.out.place(&json!({ "url": place }), &place)?;
    session.out.hint("Ctrl-C ends the console");
    serving.await;
    Err(Failure::new("the console has ended by itself: its port was closed"))
}

#[cfg(unix)]
fn listen(
    address: SocketAddr,
    socket: Option<&Path>,
) -> Result<(ConsoleListener, String), Failure> {
    match socket {
        Some(path) => {
            let place = format!("unix:{}", path.display());
            Ok((ConsoleListener::bind_unix(path)?, place))
        }
        None => listen_at(address),
    }
}

#[cfg(not(unix))]
fn listen(address: SocketAddr, _: Option<&Path>) -> Result<(ConsoleListener, String), Failure> {
    listen_at(address)
}

/// Listens at an address. Returns its URL, too.
pub(super) fn listen_at(address: SocketAddr) -> Result<(ConsoleListener, String), Failure> {
    let listener = ConsoleListener::bind(address)?;
    let bound = listener.address().unwrap_or(address);
    Ok((listener, format!("http://{bound}/")))
}

/// Reads who may sign in.
fn secrets(file: &Path) -> Result<Secrets, Failure> {
    let text = fs::read_to_string(file).map_err(|problem| {
        Failure::usage(format!("{} can't be read: {problem}", file.display()))
    })?;
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut secrets = Secrets::new();
    for (number, line) in lines {
        let wrong = |why: String| Failure::usage(format!("{}:{number}: {why}", file.display()));
        let mut words = line.split_whitespace();
        let (Some(name), Some(role), Some(digest)) = (words.next(), words.next(), words.next())
        else {
            return Err(wrong("write a name, a role and the SHA-256 of a token".to_owned()));
        };
        let role = Role::from_word(role)
            .ok_or_else(|| wrong(format!("{role:?} is not viewer, operator or admin")))?;
        let mut identity = Identity::new(name, role);
        if let Some(queues) = words.next() {
            let patterns: Vec<&str> = queues.split(',').collect();
            if words.next().is_some() || !patterns.iter().all(|pattern| is_pattern(pattern)) {
                let why = "after the SHA-256, write nothing or the queues, with commas and without \
                           spaces between them: mail,tenant-*";
                return Err(wrong(why.to_owned()));
            }
            identity = identity.queues(patterns);
        }
        secrets =
            secrets.add_sha256(identity, digest).map_err(|problem| wrong(problem.to_string()))?;
    }
    Ok(secrets)
}

/// Returns whether the name of a queue may match. `sha256sum` prints a `-` behind the hash, which
/// nobody means as a queue.
fn is_pattern(text: &str) -> bool {
    text != "-" && QueueName::new(text.replace('*', "x")).is_ok()
}

impl From<ConsoleError> for Failure {
    fn from(problem: ConsoleError) -> Self {
        match problem {
            ConsoleError::Listen { .. } => Self::new(problem),
            problem => Self::usage(problem),
        }
    }
}
