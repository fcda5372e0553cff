//! A biz id is something that can be printed.

use optimus::{BoxError, key};

#[optimus::task(biz_id = "{order}", outcome_ttl = "7d")]
async fn reserve(order: u64) -> Result<(), BoxError> {
    let _ = order;
    Ok(())
}

fn main() {
    let _ = key(reserve, vec![7]);
    let _ = key(reserve, Some("o-17"));
    // This is right.
    let _ = key(reserve, 7);
}
