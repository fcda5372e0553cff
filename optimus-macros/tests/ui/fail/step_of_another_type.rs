//! A step takes what the one before it returns.

use optimus::{BoxError, chain, group};

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
async fn count(shard: u64) -> Result<u64, BoxError> {
    Ok(shard)
}

#[optimus::task]
async fn add_up(counts: Vec<u64>) -> Result<u64, BoxError> {
    Ok(counts.iter().sum())
}

fn main() {
    let _ = chain![reserve(7), count];
    let _ = count(7).then(ship);
    let _ = chain![count(7), pay(22, _)];
    let _ = chain![reserve(7), pay];
    let _ = chain![reserve(7), 7];
    let _ = group((0..9).map(count)).then(count);
    let _ = group((0..9).map(reserve)).then(add_up);
    let _ = chain![reserve(7), add_up];
}
