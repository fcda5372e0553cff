//! A real server that lives as long as the test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use tempfile::TempDir;

/// A private server on a unix socket.
pub(crate) struct Server {
    process: Child,
    directory: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let process = candidates()
            .iter()
            .find_map(|binary| spawn(binary, directory.path()))
            .expect("no server found: run cargo xtask test, or set OPTIMUS_REDIS_SERVER");
        Self { process, directory }
    }

    /// Connects as soon as the server listens.
    pub(crate) async fn connect(&mut self) -> MultiplexedConnection {
        let url = format!("unix://{}", self.directory.path().join("socket").display());
        let client = Client::open(url).expect("a path is a valid address");
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        loop {
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Ok(connection) => return connection,
                Err(refused) => {
                    let ended =
                        self.process.try_wait().expect("the server is a child of this process");
                    assert!(ended.is_none(), "the server ended ({ended:?}): {refused}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has no valuable data, and may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn candidates() -> Vec<String> {
    match std::env::var("OPTIMUS_REDIS_SERVER") {
        Ok(binary) => vec![binary],
        Err(_) => vec!["redis-server".to_owned(), "valkey-server".to_owned()],
    }
}

fn spawn(binary: &str, directory: &Path) -> Option<Child> {
    Command::new(binary)
        .args(["--port", "0", "--save", "", "--appendonly", "no"])
        .arg("--unixsocket")
        .arg(directory.join("socket"))
        .arg("--dir")
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}
