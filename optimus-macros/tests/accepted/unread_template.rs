//! An argument that only the biz id or the lane needs is not reported as unused.

#![deny(unused_variables)]

use optimus::BoxError;

#[optimus::task(biz_id = "{order}", lane = "user-{user.0}")]
async fn charge(order: u64, user: (u64, u64)) -> Result<(), BoxError> {
    Ok(())
}

#[optimus::task(lane = "{type}")]
fn sort(r#type: String, mut kept: u64) -> Result<u64, String> {
    kept += 1;
    Ok(kept)
}

#[tokio::main]
pub(super) async fn main() {
    charge(7, (1, 2)).perform_inline().await.unwrap();
    assert_eq!(sort("a".to_owned(), 1).perform_inline().await.unwrap(), 2);
}
