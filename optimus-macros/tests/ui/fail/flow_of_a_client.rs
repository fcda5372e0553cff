//! A client has a verb for calls, one for flows and one for groups.
//!
//! The compiler checks the bound of an `async fn` where it is called, and again for its future and
//! for the await. So the mistake in `submit` is reported three times, with the same text.

use optimus::{BoxError, Client, chain, group, step};

#[optimus::task]
async fn reserve(order: u64) -> Result<String, BoxError> {
    Ok(format!("shelf {order}"))
}

#[optimus::task]
async fn pay(account: u64, shelf: String) -> Result<String, BoxError> {
    Ok(format!("{shelf}, paid by {account}"))
}

#[optimus::task]
async fn ship(paid: String) -> Result<String, BoxError> {
    Ok(paid)
}

#[optimus::task]
async fn count(shelves: Vec<String>) -> Result<usize, BoxError> {
    Ok(shelves.len())
}

async fn submit(client: Client) {
    let _ = client.submit(chain![reserve(7), ship]).await;
    let _ = client.submit_flow(step!(pay(22, _))).await;
    let _ = client.submit_group(group([reserve(7)]).then(count)).await;
    let _ = client.submit_group(reserve(7)).await;
    // These are right: a group and a call are flows, too.
    let _ = client.submit_flow(group([reserve(7)])).await;
    let _ = client.submit_flow(reserve(7)).await;
    let _ = client.submit_group(group([reserve(7)])).await;
}

fn main() {
    drop(submit);
}
