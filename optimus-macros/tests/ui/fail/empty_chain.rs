//! A chain has a step, and `step!` has one.

use optimus::{BoxError, chain, step};

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
    let _ = chain![];
    let _ = step!();
    let _ = step!(pay(22, _), ship);
    drop((reserve(7), pay(22, "shelf 7".to_owned()), ship("paid".to_owned())));
}
