//! The tasks of a shop: the library that its application and its workers share.

use std::{io, time::Duration};

use optimus::Context;
use serde::{Deserialize, Serialize};
use tracing::info;

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
    /// Including the box.
    pub grams: u32,
    /// Who packed it.
    pub station: String,
}

/// Where a worker packs. Each worker has its own, so it is data of the worker and not an argument.
#[derive(Debug, Clone)]
pub struct Station(pub String);

/// Packs an order. For every tenth the tape runs out at first, and the task is tried again. Its log
/// events show the task's name, id and attempt, because it runs in the span of the attempt.
#[optimus::task(
    queue = "shop",
    timeout = "30s",
    max_retry = 3,
    backoff = "fixed(wait = 1s)",
    biz_id = "{order.id}"
)]
pub async fn pack(order: Order, #[data] station: Station, ctx: Context) -> io::Result<Parcel> {
    info!(order = order.id, "packing");
    tokio::time::sleep(PACKING).await;
    if order.id.is_multiple_of(10) && ctx.attempt() == 1 {
        // The worker logs the error, and when it tries again.
        return Err(io::Error::other(format!("order={}: the tape ran out", order.id)));
    }
    let grams = 120 + order.grams.iter().sum::<u32>();
    info!(order = order.id, grams, "packed");
    Ok(Parcel { order: order.id, grams, station: station.0 })
}
