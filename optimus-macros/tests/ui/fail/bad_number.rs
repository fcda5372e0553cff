//! Numbers have bounds.

#[optimus::task(max_retry = -1)]
async fn negative() {}

#[optimus::task(max_retry = "3")]
async fn text() {}

#[optimus::task(priority = 101)]
async fn too_high() {}

#[optimus::task(priority = -101)]
async fn too_low() {}

#[optimus::task(max_losses = 0)]
async fn zero() {}

fn main() {}
