//! A template contains only arguments and their fields.

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[derive(Clone)]
struct Pool;

#[optimus::task(biz_id = "{oder.id}")]
async fn unknown(order: Order, kind: String) {
    let _ = (order.id, kind);
}

#[optimus::task(biz_id = "{pool}")]
async fn injected(order: Order, #[data] pool: Pool) {
    let _ = (order.id, pool);
}

#[optimus::task(biz_id = "{x}")]
async fn none() {}

#[optimus::task(biz_id = "{order.id()}")]
async fn call(order: Order) {
    let _ = order.id;
}

#[optimus::task(biz_id = "{order.id")]
async fn unclosed(order: Order) {
    let _ = order.id;
}

#[optimus::task(biz_id = "{order.number}")]
async fn no_field(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "order-{order.ids}")]
async fn similar_field(order: Order) {
    let _ = order.id;
}

#[optimus::task(biz_id = "{order}")]
async fn no_display(order: Order) {
    let _ = order.id;
}

#[optimus::task(biz_id = "")]
async fn empty(order: Order) {
    let _ = order.id;
}

#[optimus::task(biz_id = "order")]
async fn without_braces(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "user")]
async fn one_lane(user: u64) {
    let _ = user;
}

#[optimus::task(gather = "10s | 500", by = "events")]
async fn one_run(events: Vec<Order>) {
    let _ = events;
}

// A text that names no parameter is one key for all calls.
#[optimus::task(biz_id = "nightly", lane = "reports")]
async fn constant(order: Order) {
    let _ = order.id;
}

fn main() {}
