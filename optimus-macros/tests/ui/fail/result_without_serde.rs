//! A result that is kept must be serializable.

struct Receipt;

#[optimus::task]
async fn charge() -> Result<Receipt, String> {
    Ok(Receipt)
}

fn main() {
    let _ = charge().queue("a").perform_async();
}
