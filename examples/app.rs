//! The application of the shop: it submits forty orders and waits for their parcels.
//!
//! Run `OPTIMUS_URL=redis://127.0.0.1/ cargo run --example app` while one or two processes of the
//! example `worker` run.

use std::collections::BTreeMap;

use optimus::Client;
use shop::{Order, pack};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    Client::from_env()?.connect().await?.install();

    let mut handles = Vec::new();
    for id in 1..=40 {
        let order = Order { id, grams: vec![100 * id, 250] };
        handles.push(pack(order).perform_async().await?);
    }
    println!("40 orders submitted; `cargo run --example worker` packs them");

    // A customer clicked twice. The first task continues, and no second one is added.
    let again = pack(Order { id: 40, grams: vec![] }).perform_async().await?;
    println!("order 40 once more: duplicate = {}", again.is_duplicate());

    let mut parcels = BTreeMap::<String, usize>::new();
    for handle in &handles {
        let parcel = handle.result().await?;
        println!("order {}: {} g from {}", parcel.order, parcel.grams, parcel.station);
        *parcels.entry(parcel.station).or_default() += 1;
    }
    for (station, count) in parcels {
        println!("{station} packed {count} parcels");
    }
    Ok(())
}
