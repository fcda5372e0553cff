//! A Redis server that ends with this process, however that ends: [`PrivateRedis`].

use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use optimus_core::Client;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tempfile::TempDir;
use tokio::{
    process::{Child, ChildStdin, Command},
    time::sleep,
};

use crate::failure::{Exit, Failure};

/// The variable that names another server program.
pub(crate) const SERVER_VAR: &str = "OPTIMUS_REDIS_SERVER";
/// The file in a folder that one server has locked.
const LOCK: &str = "optimus-dev.lock";
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// Another program may take the free port first.
const STARTS_MAX: usize = 10;
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const ASK_AFTER: Duration = Duration::from_millis(20);

/// Becomes the server, and leaves a watcher behind. The watcher reads a pipe whose other end only
/// this process holds. So it also ends the server, and removes its folder (`$1`), if this process
/// is killed. The server keeps the lock of its folder, which is the first output, as long as it
/// runs.
const SCRIPT: &str = r#"
leftovers=$1
shift
exec 3<&0 4>&1
{
    read -r word
    if [ "$word" != released ]; then
        kill -s TERM $$
        [ -z "$leftovers" ] || rm -rf -- "$leftovers"
    fi
} <&3 3<&- 4>&- >/dev/null 2>&1 &
exec "$@" </dev/null >/dev/null 2>&1 3<&-
"#;

/// A running server.
pub(crate) struct PrivateRedis {
    child: Child,
    watcher: Option<ChildStdin>,
    pub(crate) url: String,
    /// The folder is removed with this value.
    _folder: Option<TempDir>,
}

impl PrivateRedis {
    /// Starts a server on the loopback interface, at this port or a free one. With a folder, it
    /// keeps its data there; otherwise in memory alone.
    pub(crate) async fn start(port: Option<u16>, kept_in: Option<&Path>) -> Result<Self, Failure> {
        let program = find()?;
        let mut why = String::new();
        for _ in 0..STARTS_MAX {
            let port = match port {
                Some(port) => port,
                None => free_port()?,
            };
            match Self::try_start(&program, port, kept_in).await? {
                Ok(server) => return Ok(server),
                Err(log) => why = log,
            }
            if !why.contains("Address already in use") || kept_in.is_some() {
                break;
            }
        }
        Err(Failure::new(format!("{} does not start:\n{}", program.display(), why.trim())))
    }

    /// Returns the server's log if it ends at once.
    async fn try_start(
        program: &Path,
        port: u16,
        kept_in: Option<&Path>,
    ) -> Result<Result<Self, String>, Failure> {
        let made = tempfile::Builder::new().prefix("optimus-dev-").tempdir();
        let folder =
            made.map_err(|problem| Failure::new(format!("no temporary folder: {problem}")))?;
        let log = folder.path().join("redis.log");
        if let Some(kept) = kept_in {
            fs::create_dir_all(kept).map_err(|problem| {
                Failure::new(format!("{} can't be created: {problem}", kept.display()))
            })?;
        }
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "optimus-dev"]).arg(folder.path()).arg(program);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no"]);
        command.arg("--dir").arg(kept_in.unwrap_or(folder.path())).arg("--logfile").arg(&log);
        command.args(["--save", "", "--maxmemory-policy", "noeviction"]);
        command.args(["--appendonly", if kept_in.is_some() { "yes" } else { "no" }]);
        // Ctrl-C reaches this process alone, which then ends the server.
        #[cfg(unix)]
        command.process_group(0);
        let lock = kept_in.map_or_else(|| Ok(Stdio::null()), |kept| lock(kept).map(Stdio::from))?;
        let started = command.stdin(Stdio::piped()).stdout(lock).spawn();
        let mut child = started.map_err(|problem| Failure::new(format!("no shell: {problem}")))?;
        let watcher = child.stdin.take();
        let url = format!("redis://127.0.0.1:{port}/");
        let mut server = Self { child, watcher, url, _folder: Some(folder) };
        let tried = std::time::Instant::now();
        loop {
            if let Ok(Some(_)) = server.child.try_wait() {
                server.release().await;
                return Ok(Err(fs::read_to_string(&log).unwrap_or_default()));
            }
            if server.answers().await {
                return Ok(Ok(server));
            }
            if tried.elapsed() > ANSWERS_WITHIN {
                server.stop().await;
                return Ok(Err(fs::read_to_string(&log).unwrap_or_default()));
            }
            sleep(ASK_AFTER).await;
        }
    }

    /// Returns whether this server answers, and not another one at its port.
    async fn answers(&self) -> bool {
        let Ok(client) = Client::connect(&self.url).await else { return false };
        let facts = client.inspector().server().await;
        facts.is_ok_and(|facts| facts.process_id.is_some() && facts.process_id == self.pid())
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the server ends by itself.
    pub(crate) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the server, which writes down what it keeps.
    pub(crate) async fn stop(mut self) {
        // The watcher ends it when the pipe closes.
        drop(self.watcher.take());
        let _ = self.child.wait().await;
    }

    /// Lets the watcher leave the server alone, whose pid may be that of another process soon.
    async fn release(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut watcher, b"released\n").await;
        }
    }
}

/// Locks a folder for one server. Two servers would write to the same file.
fn lock(kept: &Path) -> Result<File, Failure> {
    let path = kept.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|problem| {
        Failure::new(format!("{} can't be written to: {problem}", path.display()))
    })?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|problem| {
        let folder = kept.display();
        if problem == Errno::WOULDBLOCK {
            let text = format!(
                "another `optimus dev` keeps its tasks in {folder}; end it, or name another folder"
            );
            return Failure::of(Exit::Refused, text);
        }
        Failure::new(format!("{folder} can't be locked: {problem}"))
    })?;
    Ok(file)
}

/// Finds the program of the server.
fn find() -> Result<PathBuf, Failure> {
    if let Some(named) = env::var_os(SERVER_VAR).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let files = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        Failure::not_found(format!(
            "no redis-server and no valkey-server is in PATH: install one (Debian and Ubuntu: \
             `apt install redis-server`, macOS: `brew install redis`), or set {SERVER_VAR} to its \
             program. A program that needs no server connects to memory://name."
        ))
    })
}

fn free_port() -> Result<u16, Failure> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    free.map(|address| address.port()).map_err(|problem| {
        Failure::new(format!("no port of the loopback interface is free: {problem}"))
    })
}
