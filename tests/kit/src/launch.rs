//! The setup of a private server: its options, its folder and its address.

use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use crate::child::ChildGuard;
use crate::faketime::Clock;
use crate::ping::Address;
use crate::{REDIS_SERVER_VAR, RedisServer, find_redis_server};

/// The range of ports. It is below the ports that the system gives to outgoing connections, so that
/// a restarted server finds its port free.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The number of tries. Two tests may choose the same port at the same moment, and the second one
/// then tries another port.
const PORT_ATTEMPTS: usize = 20;

/// The files of the server's own log, and of its output before it has read where to log.
const LOG: &str = "redis.log";
const COMPLAINTS: &str = "stderr.log";

/// A script that ignores the signal of a write beyond the limit. A program inherits the ignored
/// signals of the process that it replaces.
const IGNORE_LIMIT: &str = r#"trap '' XFSZ; exec "$@""#;

/// The options of a private server. By default, the server listens on a Unix socket in a folder
/// that only this user can enter, and stores nothing on disk.
#[derive(Clone, Debug, Default)]
pub struct RedisServerBuilder {
    under: Vec<String>,
    args: Vec<String>,
    tcp: bool,
    settable_clock: bool,
    password: Option<String>,
    tls: Option<TlsFiles>,
}

/// The TLS files of a server, and its requirement for clients.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the server.
    pub cert: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The CA. If it is set, clients must present a certificate of this CA.
    pub client_ca: Option<PathBuf>,
}

impl RedisServerBuilder {
    /// Adds a setting of redis.conf, such as `.arg("--maxmemory", "64mb")`. It overrides the
    /// defaults.
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Runs the server under another program, such as `valgrind --tool=callgrind`.
    pub fn under(mut self, command_line: &[String]) -> Self {
        self.under = command_line.into();
        self
    }

    /// Writes each command to disk before answering it, so that answered commands survive
    /// [`RedisServer::kill`].
    pub fn appendonly_always(self) -> Self {
        self.arg("--appendonly", "yes").arg("--appendfsync", "always")
    }

    /// Listens on a free port of the loopback interface, and not on a socket.
    pub fn tcp(mut self) -> Self {
        self.tcp = true;
        self
    }

    /// Treats a [full disk](RedisServer::fill_disk) as a failed write. Without this option, the
    /// system kills the server at the first byte above the limit.
    pub fn survives_a_full_disk(self) -> Self {
        self.under(&["sh", "-c", IGNORE_LIMIT, "sh"].map(str::to_owned))
    }

    /// Runs the server with a clock that [can be set](RedisServer::set_clock), if the system
    /// supports that.
    pub fn settable_clock(mut self) -> Self {
        self.settable_clock = true;
        self
    }

    /// Requires this password of every client. The password may have only letters and digits,
    /// because it is part of the URL.
    pub fn password(mut self, password: &str) -> Self {
        let plain = password.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(plain && !password.is_empty(), "a test's password has only letters and digits");
        self.password = Some(password.to_owned());
        self
    }

    /// Accepts TLS, too, on a separate [port](RedisServer::tls_port). Some servers can't do that.
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.tls = Some(files);
        self.tcp()
    }

    /// Starts the server and waits up to 10 s until it answers.
    ///
    /// # Panics
    ///
    /// If the server does not start; the message contains its log.
    pub fn start(self) -> RedisServer {
        self.try_start().unwrap_or_else(|failure| panic!("{failure}"))
    }

    pub(crate) fn try_start(&self) -> Result<RedisServer, String> {
        let mut failure = String::new();
        for _ in 0..PORT_ATTEMPTS {
            match RedisServer::launch(Launch::prepare(self)) {
                Ok(server) => return Ok(server),
                Err(error) => failure = error,
            }
            if !(self.tcp && failure.contains("Address already in use")) {
                break;
            }
        }
        Err(failure)
    }
}

/// The values that are needed to start one server, once or repeatedly.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) address: Address,
    pub(crate) password: Option<String>,
    pub(crate) folder: TempDir,
    pub(crate) tls: Option<(u16, TlsFiles)>,
    program: PathBuf,
    under: Vec<String>,
    args: Vec<String>,
    pub(crate) clock: Option<Box<Clock>>,
}

impl Launch {
    fn prepare(options: &RedisServerBuilder) -> Self {
        let program = find_redis_server().unwrap_or_else(|| {
            panic!(
                "no redis-server: install it with `cargo xtask redis`, or set \
                 ${REDIS_SERVER_VAR} to its path"
            )
        });
        let folder = tempfile::Builder::new()
            .prefix("optimus-redis-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .expect("the system's folder for temporary files is writable");
        let address = if options.tcp {
            Address::Port(free_port())
        } else {
            Address::Socket(folder.path().join("redis.sock"))
        };
        let clock = options.settable_clock.then(|| Clock::new(&program, folder.path())).flatten();
        let clock = clock.map(Box::new);
        let RedisServerBuilder { under, args, password, tls, .. } = options.clone();
        let tls = tls.map(|files| (free_port(), files));
        Self { address, password, folder, tls, program, under, args, clock }
    }

    /// Starts the server's process, without waiting until it is ready.
    pub(crate) fn spawn(&self) -> std::io::Result<ChildGuard> {
        let leftovers = Some(self.folder.path());
        let mut command = match self.under.split_first() {
            None => ChildGuard::command(&self.program, leftovers),
            Some((outer, args)) => {
                let mut command = ChildGuard::command(outer, leftovers);
                command.args(args).arg(&self.program);
                command
            }
        };
        command.arg("--dir").arg(self.folder.path()).args(["--logfile", LOG]);
        command.args(["--daemonize", "no", "--save", "", "--appendonly", "no"]);
        match &self.address {
            Address::Socket(path) => {
                command.args(["--port", "0", "--unixsocketperm", "700", "--unixsocket"]).arg(path);
            }
            Address::Port(port) => {
                command.args(["--bind", "127.0.0.1", "--port"]).arg(port.to_string());
            }
        }
        if let Some(password) = &self.password {
            command.args(["--requirepass", password]);
        }
        if let Some((port, files)) = &self.tls {
            command.arg("--tls-port").arg(port.to_string());
            command.arg("--tls-cert-file").arg(&files.cert).arg("--tls-key-file").arg(&files.key);
            let asks = if files.client_ca.is_some() { "yes" } else { "no" };
            // The server needs a CA even if it does not check clients.
            let ca = files.client_ca.as_ref().unwrap_or(&files.cert);
            command.args(["--tls-auth-clients", asks, "--tls-ca-cert-file"]).arg(ca);
        }
        if let Some(clock) = &self.clock {
            clock.give_to(&mut command);
        }
        let complaints = File::create(self.folder.path().join(COMPLAINTS))?;
        command.args(&self.args).stdout(Stdio::null()).stderr(complaints);
        ChildGuard::spawn(&mut command)
    }

    pub(crate) fn url(&self) -> String {
        match (&self.address, &self.password) {
            (Address::Socket(path), None) => format!("unix://{}", path.display()),
            (Address::Socket(path), Some(word)) => format!("unix://{}?pass={word}", path.display()),
            (Address::Port(port), None) => format!("redis://127.0.0.1:{port}/"),
            (Address::Port(port), Some(word)) => format!("redis://:{word}@127.0.0.1:{port}/"),
        }
    }

    /// Returns the end of the server's log, which explains why the server did not start.
    pub(crate) fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        let log = read(LOG) + &read(COMPLAINTS);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

fn free_port() -> u16 {
    std::iter::repeat_with(|| fastrand::u16(PORTS))
        .take(1_000)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("one of a thousand ports is free")
}
