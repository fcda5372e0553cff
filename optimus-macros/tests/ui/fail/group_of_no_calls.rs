//! A group is made of calls that return one type.

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

fn main() {
    let _ = group([count]);
    let _ = group(count(7));
    let _ = group(vec![chain![reserve(7), ship], reserve(8)]);
}
