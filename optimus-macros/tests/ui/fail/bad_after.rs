//! A task waits for the functions of other tasks, which have the same biz id.

#[optimus::task(biz_id = "{order}", outcome_ttl = "7d")]
async fn reserve(order: u64) {
    let _ = order;
}

#[optimus::task(after = reserve)]
async fn no_biz_id(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = "reserve")]
async fn quoted(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = "shop/re serve")]
async fn bad_name(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = reserve(order))]
async fn called(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = [])]
async fn nothing(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", on_prerequisite_failure = "run")]
async fn no_prerequisite(order: u64) {
    let _ = order;
}

#[optimus::task(give_up_after = "1h")]
async fn no_prerequisite_either(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = reserve, on_prerequisite_failure = "fail")]
async fn other_policy(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = reserve, give_up_after = 0)]
async fn never(order: u64) {
    let _ = order;
}

#[optimus::task(outcome_ttl = 0)]
async fn forgotten() {}

#[optimus::task(biz_id = "{order}", depends_on = reserve)]
async fn synonym(order: u64) {
    let _ = order;
}

fn main() {}
