//! A duration is a number of seconds, or numbers with units.

#[optimus::task(timeout = "10 minutes")]
async fn words() {}

#[optimus::task(timeout = "600")]
async fn no_unit() {}

#[optimus::task(timeout = "30m1h")]
async fn wrong_order() {}

#[optimus::task(timeout = 1.5)]
async fn fraction() {}

#[optimus::task(timeout = 10m)]
async fn unquoted() {}

#[optimus::task(timeout = 0)]
async fn zero() {}

#[optimus::task(expires_in = "0s")]
async fn zero_text() {}

#[optimus::task(result_ttl = -5)]
async fn negative() {}

#[optimus::task(biz_window = "2000d")]
async fn too_long() {}

fn main() {}
