//! A flow calls no closure: a step is written as a call.

use optimus::{BoxError, chain};

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

fn main() {
    let _ = chain![reserve(7), |shelf: String| pay(22, shelf)];
    let _ = reserve(7).then(|shelf| pay(22, shelf));
}
