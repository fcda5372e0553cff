//! The arguments beside `_` are those of the task.

use optimus::{BoxError, chain};

#[optimus::task]
async fn reserve(order: u64) -> Result<String, BoxError> {
    Ok(format!("shelf {order}"))
}

#[optimus::task]
async fn pay(account: u64, shelf: String) -> Result<String, BoxError> {
    Ok(format!("{shelf}, paid by {account}"))
}

#[optimus::task]
async fn ship(paid: String) -> Result<String, BoxError> {
    Ok(paid)
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        String::deserialize(from)
    }
}

#[optimus::task]
async fn print(#[serde(with = "hex")] label: String) {
    drop(label);
}

fn main() {
    let _ = chain![reserve(7), pay(_)];
    let _ = chain![reserve(7), pay("Ann", _)];
    let _ = chain![reserve(7), print];
    let _ = chain![reserve(7), print(_)];
}
