//! A worker moves an attempt between threads.

use std::rc::Rc;

#[optimus::task]
async fn charge(order: u64) {
    let shared = Rc::new(order);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {
    let _ = charge(1).perform_async();
}
