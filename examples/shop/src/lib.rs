//! The tasks of a shop: the library that its application and its workers share.

use std::{io, time::Duration};

use optimus::Context;
use serde::{Deserialize, Serialize};
use tracing::info;

const PACKING: Duration = Duration::from_millis(500);

/// An order of a customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The number of the order. It is the biz id, so that no order is packed twice.
    pub id: u32,
    /// The weight of each item.
    pub grams: Vec<u32>,
}

/// A packed order, ready to be sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// The order's number.
    pub order: u32,
    /// The weight, including the box.
    pub grams: u32,
    /// The station that packed it.
    pub station: String,
}

/// The place where a worker packs. Each worker has a different one, so the station is data of the
/// worker and not an argument.
#[derive(Debug, Clone)]
pub struct Station(pub String);

/// Packs an order. For every tenth order, the tape runs out in the first attempt, and the task is
/// tried again. The log events show the task's name, id and attempt, because the handler runs in
/// the span of the attempt.
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
        // The worker logs the error, and when it will try again.
        return Err(io::Error::other(format!("order={}: the tape ran out", order.id)));
    }
    let grams = 120 + order.grams.iter().sum::<u32>();
    info!(order = order.id, grams, "packed");
    Ok(Parcel { order: order.id, grams, station: station.0 })
}
