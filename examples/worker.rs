//! A worker of the shop: packs orders until SIGTERM or Ctrl-C. Start as many as you like.
//!
//! `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example worker`

use optimus::Worker;
use shop::Station;

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let station = Station(format!("station-{}", std::process::id()));
    let name = station.0.clone();
    // Four at once and not the default 64, so that forty orders keep several workers busy.
    let worker = Worker::from_env()?.concurrency(4).data(station).build()?;
    println!("{name} opens; end it with Ctrl-C");
    worker.run().await?;
    println!("{name} is closed: what it had begun is packed");
    Ok(())
}
