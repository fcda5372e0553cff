//! A task's error is stored in its error history, so it must be an error type.

#[derive(Debug)]
struct Declined;

#[optimus::task]
async fn charge() -> Result<u32, Declined> {
    Err(Declined)
}

fn main() {
    let _ = charge().queue("a").perform_async();
}
