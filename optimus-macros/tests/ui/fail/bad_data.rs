//! Data is cloned for attempts on any thread.

use std::cell::Cell;

struct Pool;

#[optimus::task]
async fn no_clone(#[data] pool: Pool) {
    let _ = pool;
}

#[optimus::task]
async fn no_sync(#[data] shared: Cell<u8>) {
    let _ = shared;
}

fn main() {
    let _ = no_clone().perform_async();
    let _ = no_sync().perform_async();
}
