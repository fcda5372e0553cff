//! A worker of the shop. It packs orders until SIGTERM or Ctrl-C. You can start several workers.
//!
//! Run `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example worker`. With `-- --json`, the log is
//! JSON. `RUST_LOG` sets what is logged, such as `warn`, or `info,optimus::task=debug`.

use std::{
    env,
    io::{self, IsTerminal},
};

use optimus::Worker;
use shop::Station;
use tracing::{info, level_filters::LevelFilter};
use tracing_subscriber::EnvFilter;

/// Starts the log on stdout, with one event per line, for people or for programs.
fn start_log(as_json: bool) {
    let info = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let log = tracing_subscriber::fmt().with_env_filter(info.from_env_lossy());
    if as_json {
        log.json().flatten_event(true).with_current_span(false).init();
    } else {
        log.with_ansi(io::stdout().is_terminal()).init();
    }
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let as_json = env::args().any(|arg| arg == "--json");
    start_log(as_json);
    let name = format!("station-{}", std::process::id());
    // The worker runs four orders at once and not the default 64, so that forty orders keep several
    // workers busy.
    let worker = Worker::from_env()?.concurrency(4).data(Station(name.clone()));
    // A program that reads the log may read stderr, too.
    let worker = if as_json { worker.quiet() } else { worker };
    info!(name, "the station opens; end it with Ctrl-C");
    worker.run().await?;
    info!(name, "the station is closed; every order that it had begun is packed");
    Ok(())
}
