//! A private Prometheus: [`PrometheusServer`].

use std::{
    env,
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    child::ChildGuard,
    http::{HttpAnswer, http_get},
    ready::await_ready,
};

const START_WITHIN: Duration = Duration::from_secs(60);
/// Another program may take the free port first.
const TRIES: u32 = 3;

/// Returns the path of a program of Prometheus: `prometheus` or `promtool`.
pub fn find_prometheus(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// A private Prometheus on a port of loopback. When this process ends, the server is killed and its
/// folder removed.
#[derive(Debug)]
pub struct PrometheusServer {
    _process: ChildGuard,
    folder: TempDir,
    address: SocketAddr,
}

impl PrometheusServer {
    /// Starts a server with this configuration, in a folder with these other files.
    ///
    /// # Panics
    ///
    /// If there is no Prometheus or it does not start; the message has its log.
    pub fn start(config: &str, files: &[(&str, &str)]) -> Self {
        let program = find_prometheus("prometheus").expect("a program of this name is in PATH");
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix("optimus-prometheus-").tempdir();
            let folder = folder.expect("the system's folder for temporary files is writable");
            for (name, text) in files.iter().chain(&[("prometheus.yml", config)]) {
                fs::write(folder.path().join(name), text).expect("the folder is writable");
            }
            if let Some((process, address)) = start(&program, folder.path()) {
                return Self { _process: process, folder, address };
            }
        }
        panic!("found no free port for Prometheus");
    }

    /// Returns the path of a file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Asks its HTTP API, such as `query`, with the values of parameters. Blocks until the answer.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn api(&self, path: &str, parameters: &[(&str, &str)]) -> HttpAnswer {
        let pairs: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request = format!("GET /api/v1/{path}?{}", pairs.join("&"));
        http_get(self.address, &request).expect("Prometheus answers")
    }
}

/// Starts a server on a free port; none if the port was taken meanwhile.
fn start(program: &Path, folder: &Path) -> Option<(ChildGuard, SocketAddr)> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback is free");
    let address = free.local_addr().expect("the socket has an address");
    drop(free);
    let mut command = ChildGuard::command(program, Some(folder));
    command.arg(format!("--config.file={}", folder.join("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address={address}")).current_dir(folder);
    let log = folder.join("server.log");
    let file = fs::File::create(&log).expect("the folder is writable");
    let mut process =
        ChildGuard::spawn(command.stdout(Stdio::null()).stderr(file)).expect("a shell");
    let check = || match http_get(address, "GET /-/ready") {
        Ok(answer) if answer.status == 200 => Ok(()),
        _ => Err("it takes too long".into()),
    };
    let failure = match await_ready(&mut process, START_WITHIN, check) {
        Ok(()) => return Some((process, address)),
        Err(failure) => failure,
    };
    let text = fs::read_to_string(&log).unwrap_or_default();
    assert!(
        text.contains("address already in use"),
        "{command:?} did not start: {failure}; its log:\n{text}"
    );
    None
}

/// Runs `promtool` with these arguments.
///
/// # Panics
///
/// If it complains; the message has its words.
pub fn promtool(arguments: &[&str]) {
    let program = find_prometheus("promtool").expect("a program of this name is in PATH");
    let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let ended = ended.expect("promtool can be run");
    let texts = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ended.status.success(), "promtool {arguments:?}: {texts:?}");
}

/// Returns a text as a value in a URL.
fn encoded(text: &str) -> String {
    let mut all = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
    }
    all
}
