//! The worker: runs tasks until SIGTERM or Ctrl-C.

use std::io::{IsTerminal, stdout};

// The tasks of a library are found only if the program names the library.
use hello as _;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// Starts the log on stdout, in colours on a terminal. `RUST_LOG` sets the level (default: `info`).
fn start_log() {
    let info = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let log = tracing_subscriber::fmt().with_env_filter(info.from_env_lossy());
    log.with_ansi(stdout().is_terminal()).init();
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    start_log();
    optimus::Worker::from_env()?.run().await
}
