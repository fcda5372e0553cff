//! An attempt has one context.

use optimus::Context;

#[optimus::task]
async fn charge(ctx: Context, order: u64, again: optimus::Context) {
    let _ = (ctx, order, again);
}

fn main() {
    let _ = charge(1).perform_async();
}
