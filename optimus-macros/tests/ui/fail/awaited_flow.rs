//! A flow, a group and a step do nothing until a verb, and a handle has verbs to wait.

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

async fn submit() -> optimus::Result<()> {
    chain![reserve(7), ship].await;
    group([reserve(7)]).await;
    step!(pay(22, _)).await;
    reserve(7).erase()?.await;
    let task = reserve(7).perform_async().await?;
    task.await;
    let flow = chain![reserve(7), ship].perform_async().await?;
    flow.await;
    let group = group([reserve(7)]).perform_async().await?;
    group.await;
    Ok(())
}

fn main() {
    drop(submit());
}
