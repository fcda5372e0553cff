//! A limit has a rate with a unit, or a number of tasks that may run at once.

#[optimus::task(rate = "100/sec")]
async fn bad_unit() {}

#[optimus::task(rate = 100)]
async fn no_unit() {}

#[optimus::task(rate = 100 / s)]
async fn no_quotes() {}

#[optimus::task(rate = "0/s")]
async fn zero() {}

#[optimus::task(rate = "200000/s")]
async fn too_fast() {}

#[optimus::task(rate = "10/s", burst = 0)]
async fn no_burst() {}

#[optimus::task(burst = 10)]
async fn burst_alone() {}

#[optimus::task(max_working = 0)]
async fn none_working() {}

#[optimus::task(lane_rate = "10/s")]
async fn no_lane() {}

#[optimus::task(lane = "user-{user}", lane_burst = 2)]
async fn no_lane_rate(user: u64) {
    let _ = user;
}

#[optimus::task(cost = 2)]
async fn cost_alone() {}

#[optimus::task(limit = "stripe eu", rate = "10/s")]
async fn bad_name() {}

#[optimus::task(rate_limit = "10/s")]
async fn synonym() {}

#[optimus::task(concurrency = 4)]
async fn other_synonym() {}

#[optimus::task(max_workin = 4)]
async fn slip() {}

fn main() {}
