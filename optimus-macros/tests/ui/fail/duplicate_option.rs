//! An option is set once.

#[optimus::task(timeout = 5, queue = "a", timeout = 10)]
async fn charge() {}

fn main() {
    let _ = charge().perform_async();
}
