//! A task can wait by biz id only for a task whose outcome is remembered, and only for a task.

#[optimus::task(biz_id = "{order}")]
async fn reserve(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = reserve)]
async fn ship(order: u64) {
    let _ = order;
}

fn plain(_order: u64) {}

#[optimus::task(biz_id = "{order}", after = plain)]
async fn bill(order: u64) {
    let _ = order;
}

#[optimus::task(biz_id = "{order}", after = unknown)]
async fn pack(order: u64) {
    let _ = order;
}

async fn submit() {
    let _ = ship(7).after("reserve");
}

fn main() {
    drop(submit());
}
