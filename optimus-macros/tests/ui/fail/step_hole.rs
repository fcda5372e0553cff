//! `_` is one whole argument of the call that is a step.

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

fn main() {
    let _ = chain![reserve(7), pay(_, _)];
    let _ = chain![reserve(7), pay(22, Some(_))];
    let _ = chain![reserve(7), pay(22, "shelf 7".to_owned()).lane(_)];
    let _ = chain![reserve(7), group([1, 2].map(|account| pay(account, _))), ship];
    let _ = step!(pay(22, format!("{}", _)).lane(_));
    let _ = pay(22, _).then(ship);
}
