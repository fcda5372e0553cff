//! The tasks of a shop: the library that its application and its workers share.

use std::{io, time::Duration};

use optimus::Context;
use serde::{Deserialize, Serialize};

const PACKING: Duration = Duration::from_millis(500);

/// What a customer wants.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Its number; the biz id, so that an order is not packed twice.
    pub id: u32,
    /// The weight of each of its goods.
    pub grams: Vec<u32>,
}

/// Ready to be sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// The order's number.
    pub order: u32,
    /// With the box.
    pub grams: u32,
    /// Who packed it.
    pub station: String,
}

/// Where a worker packs: its own, so it is data of the worker and not an argument.
#[derive(Debug, Clone)]
pub struct Station(pub String);

/// Packs an order. In every tenth the tape runs out at first, and it is tried again.
#[optimus::task(
    queue = "shop",
    timeout = "30s",
    max_retry = 3,
    backoff = "fixed(wait = 1s)",
    biz_id = "{order.id}"
)]
pub async fn pack(order: Order, #[data] station: Station, ctx: Context) -> io::Result<Parcel> {
    println!("order {}: packing, attempt {}", order.id, ctx.attempt());
    tokio::time::sleep(PACKING).await;
    if order.id.is_multiple_of(10) && ctx.attempt() == 1 {
        println!("order {}: the tape ran out, once more in a second", order.id);
        return Err(io::Error::other("the tape ran out"));
    }
    let grams = 120 + order.grams.iter().sum::<u32>();
    println!("order {}: packed, {grams} g", order.id);
    Ok(Parcel { order: order.id, grams, station: station.0 })
}
