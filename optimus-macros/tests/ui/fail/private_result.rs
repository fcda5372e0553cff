//! The result of a public task is public.
#![deny(private_interfaces)]

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Receipt;

#[optimus::task]
pub async fn charge() -> Result<Receipt, String> {
    Ok(Receipt)
}

fn main() {
    let _ = charge().perform_async();
}
