//! The worker: runs tasks until SIGTERM or Ctrl-C.

// The tasks of a library are found only if the program names the library.
use hello as _;

#[tokio::main]
async fn main() -> optimus::Result<()> {
    tracing_subscriber::fmt().init();
    optimus::Worker::from_env()?.run().await
}
