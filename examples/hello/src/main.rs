//! The application: submits a task, and waits for its result.

use hello::welcome;
use optimus::Client;

#[tokio::main]
async fn main() -> optimus::Result<()> {
    Client::from_env()?.connect().await?.install();
    let handle = welcome(7, "Ann".to_owned()).perform_async().await?;
    println!("submitted {}", handle.id());
    println!("{}", handle.result().await?);
    Ok(())
}
