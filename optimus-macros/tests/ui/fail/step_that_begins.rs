//! A step that takes a result is not the first of a flow, and the first is a call.

use optimus::{BoxError, chain, group, step};

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

async fn submit() {
    let _ = chain![pay(22, _), ship].perform_async().await;
    let _ = step!(pay(22, _)).perform_async().await;
    let _ = group([1, 2].map(|account| step!(pay(account, _)))).perform_async().await;
    let _ = chain![reserve, ship];
    let _ = chain![7, ship];
}

fn main() {
    drop(submit());
}
