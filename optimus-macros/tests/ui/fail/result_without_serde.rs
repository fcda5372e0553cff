//! A result that is kept is stored.

struct Receipt;

#[optimus::task]
async fn charge() -> Result<Receipt, String> {
    Ok(Receipt)
}

fn main() {
    let _ = charge().queue("a").perform_async();
}
