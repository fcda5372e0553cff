//! Data is cloned for each attempt; only `&'static` may stay a reference.

use optimus::Context;

#[derive(Clone)]
struct Pool;

#[optimus::task]
async fn data(#[data] pool: &Pool) {
    let _ = pool;
}

#[optimus::task]
async fn context(ctx: &Context) {
    let _ = ctx;
}

fn main() {
    let _ = data().perform_async();
    let _ = context().perform_async();
}
