//! Submits a task, and runs it in the same process.

use hello::welcome;
use optimus::{Client, Worker};

#[tokio::main]
async fn main() -> optimus::Result<()> {
    Client::connect("memory://hello").await?.install();
    let handle = welcome(7, "Ann".to_owned()).perform_async().await?;

    let worker = Worker::builder("memory://hello").build()?;
    println!("{}", worker.run_until(handle.result()).await??);
    Ok(())
}
