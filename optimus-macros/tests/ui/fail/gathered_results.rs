//! A gathered task whose calls end in different ways returns `Each`.

use optimus::BoxError;

#[optimus::task(gather = "10s | 500")]
async fn charge(amounts: Vec<u64>) -> Result<Vec<Result<u64, BoxError>>, BoxError> {
    Ok(amounts.into_iter().map(Ok).collect())
}

fn main() {}
