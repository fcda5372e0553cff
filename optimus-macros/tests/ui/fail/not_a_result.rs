//! A task succeeds or fails; a bare value does not show which.

#[optimus::task]
async fn number() -> u32 {
    5
}

fn main() {
    let _ = number().queue("a").perform_async();
}
