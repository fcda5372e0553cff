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

/// The form of the log: for people or for programs.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Text,
    Json,
}

/// Starts the log on stdout, with one event per line.
fn start_log(form: Form) {
    let info = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let log = tracing_subscriber::fmt().with_env_filter(info.from_env_lossy());
    if form == Form::Json {
        log.json().flatten_event(true).with_current_span(false).init();
    } else {
        log.with_ansi(io::stdout().is_terminal()).init();
    }
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let is_json = env::args().any(|arg| arg == "--json");
    let form = if is_json { Form::Json } else { Form::Text };
    start_log(form);
    let name = format!("station-{}", std::process::id());
    // The worker runs four orders at once and not the default 64, so that forty orders keep several
    // workers busy.
    let worker = Worker::from_env()?.concurrency(4).data(Station(name.clone()));
    // A program that reads the log may read stderr, too.
    let worker = if form == Form::Json { worker.quiet() } else { worker };
    info!(name, "the station opens; end it with Ctrl-C");
    worker.run().await?;
    info!(name, "the station is closed; every order that it had begun is packed");
    Ok(())
}
