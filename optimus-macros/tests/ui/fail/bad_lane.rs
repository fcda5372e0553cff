//! A lane has a key of arguments, a width of at least 1, and one of two policies.

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[optimus::task(lane_width = 4)]
async fn no_lane(order: Order) {
    let _ = order.id;
}

#[optimus::task(on_lane_failure = "block")]
async fn no_lane_either(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "{order.id}", lane_width = 0)]
async fn no_width(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "{order.id}", lane_width = 65536)]
async fn too_wide(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "{order.id}", on_lane_failure = "blok")]
async fn slip(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "{order.id}", on_lane_failure = "retry")]
async fn other_policy(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "")]
async fn empty() {}

#[optimus::task(lane = "a\nb")]
async fn control() {}

#[optimus::task(lane = "user-{user}")]
async fn no_parameter(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "{order.id()}")]
async fn call(order: Order) {
    let _ = order.id;
}

#[optimus::task(group = "{order.id}")]
async fn synonym(order: Order) {
    let _ = order.id;
}

#[optimus::task(lane = "user-{order.user}")]
async fn no_field(order: Order) {
    let _ = order.id;
}

fn main() {}
