//! Private servers of SQL databases: [`PostgresServer`], [`MariaDbServer`].
//!
//! They listen on Unix sockets in a folder of their own. Both refuse to run as root, so root starts
//! them as the user `nobody`.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::child::ChildGuard;
use crate::ready::await_ready;

/// The time limit of a start.
const START_WITHIN: Duration = Duration::from_secs(60);

/// The user who may do the least.
const NOBODY: &str = "nobody";

/// Where Debian has the programs that it keeps out of `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const POSTGRES_FOLDERS: &str = "/usr/lib/postgresql";

/// Returns the path of a program of PostgreSQL, such as `postgres`.
pub fn find_postgres(program: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES_FOLDERS).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    find(program, folders.into_iter().rev())
}

/// Returns the path of a program of MariaDB, such as `mariadbd`.
pub fn find_mariadb(program: &str) -> Option<PathBuf> {
    find(program, FOLDERS.map(PathBuf::from).into_iter())
}

fn find(program: &str, more: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain(more);
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

/// A private PostgreSQL. When this process ends, the server is killed and its folder removed.
#[derive(Debug)]
pub struct PostgresServer {
    process: ChildGuard,
    folder: TempDir,
}

/// A private MariaDB. When this process ends, the server is killed and its folder removed.
#[derive(Debug)]
pub struct MariaDbServer {
    _process: ChildGuard,
    folder: TempDir,
}

impl PostgresServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If there is no PostgreSQL or it does not start; the message says what to do.
    pub fn start() -> Self {
        let missing = "no PostgreSQL: install the package postgresql, or run `cargo xtask test`";
        let [initdb, postgres] =
            ["initdb", "postgres"].map(|name| find_postgres(name).expect(missing));
        let folder = folder("optimus-postgres-");
        let data = folder.path().join("data");
        let mut init = as_nobody(&initdb);
        init.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8"]);
        run(init.args(["--no-locale", "--no-sync"]));
        let process = serve(&postgres, folder.path()).unwrap_or_else(|failure| panic!("{failure}"));
        Self { process, folder }
    }

    /// Kills the server with -9, and starts it again.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn crash(&mut self) {
        self.process.kill().expect("it runs");
        let postgres = find_postgres("postgres").expect("it was there before");
        let deadline = Instant::now() + START_WITHIN;
        self.process = loop {
            match serve(&postgres, self.folder.path()) {
                Ok(process) => break process,
                // The processes of its connections end soon after it.
                Err(failure) => assert!(Instant::now() < deadline, "{failure}"),
            }
        };
    }

    /// Returns the URL of a database of this server, such as `postgres`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.folder.path().display())
    }
}

impl MariaDbServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If there is no MariaDB or it does not start; the message says what to do.
    pub fn start() -> Self {
        let missing = "no MariaDB: install the package mariadb-server, or run `cargo xtask test`";
        let [install, mariadbd] =
            ["mariadb-install-db", "mariadbd"].map(|name| find_mariadb(name).expect(missing));
        let folder = folder("optimus-mariadb-");
        let data = folder.path().join("data");
        // A server that starts removes the temporary tables of all in the folder of the system.
        let mut init = as_nobody(&install);
        init.env("TMPDIR", folder.path());
        init.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        run(init.args(["--auth-root-authentication-method=normal", "--skip-test-db"]));
        let mut command = guarded(&mariadbd, folder.path());
        command.env("TMPDIR", folder.path());
        command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        command.arg(format!("--socket={}", folder.path().join("db.sock").display()));
        command.arg(format!("--pid-file={}", folder.path().join("db.pid").display()));
        command.args(["--skip-networking", "--max-connections=300"]);
        command.arg("--innodb-flush-log-at-trx-commit=0");
        let process = start(&mut command, folder.path(), "ready for connections");
        let process = process.unwrap_or_else(|failure| panic!("{failure}"));
        Self { _process: process, folder }
    }

    /// Returns the URL of a database of this server, such as `mysql`.
    pub fn url(&self, database: &str) -> String {
        let socket = self.folder.path().join("db.sock");
        format!("mysql://root@localhost/{database}?socket={}", socket.display())
    }
}

/// Starts a PostgreSQL with the data in a folder.
fn serve(postgres: &Path, folder: &Path) -> Result<ChildGuard, String> {
    let mut command = guarded(postgres, folder);
    command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    for setting in ["listen_addresses=", "fsync=off", "max_connections=300"] {
        command.args(["-c", setting]);
    }
    start(&mut command, folder, "ready to accept connections")
}

/// Returns a folder that belongs to the user who runs the server.
fn folder(prefix: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir();
    let folder = folder.expect("the system's folder for temporary files is writable");
    if is_root() {
        run(Command::new("chown").arg(NOBODY).arg(folder.path()));
    }
    folder
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns the words before a program that keep it from running as root.
fn words_before(program: &Path) -> (PathBuf, Vec<&'static OsStr>) {
    if !is_root() {
        return (program.to_owned(), Vec::new());
    }
    let words = ["--reuid", NOBODY, "--regid", "nogroup", "--clear-groups", "--"];
    ("setpriv".into(), words.map(OsStr::new).to_vec())
}

fn as_nobody(program: &Path) -> Command {
    let (first, words) = words_before(program);
    let mut command = Command::new(&first);
    command.args(words);
    if first != program {
        command.arg(program);
    }
    command.current_dir("/");
    command
}

fn guarded(program: &Path, leftovers: &Path) -> Command {
    let (first, words) = words_before(program);
    let mut command = ChildGuard::command(&first, Some(leftovers));
    command.args(words);
    if first != program {
        command.arg(program);
    }
    command.current_dir("/");
    command
}

/// Runs a program until it ends.
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?} ended with {}: {texts:?}", output.status);
}

/// Starts a server and waits until its log says that it is ready. Its socket accepts connections
/// earlier.
fn start(command: &mut Command, folder: &Path, ready: &str) -> Result<ChildGuard, String> {
    let log = folder.join("server.log");
    let file = fs::File::create(&log).expect("the folder is writable");
    command.stdout(Stdio::null()).stderr(file);
    let mut process = ChildGuard::spawn(command).expect("a shell");
    let text = || fs::read_to_string(&log).unwrap_or_default();
    let check = || if text().contains(ready) { Ok(()) } else { Err("it takes too long".into()) };
    match await_ready(&mut process, START_WITHIN, check) {
        Ok(()) => Ok(process),
        Err(failure) => Err(format!("{command:?} did not start: {failure}; its log:\n{}", text())),
    }
}
