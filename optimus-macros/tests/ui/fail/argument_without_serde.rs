//! The error is at the type in the signature, and callers have none.

struct Order;
struct Customer;

#[optimus::task]
async fn charge(order: Order, times: u8, customers: Vec<Customer>) {
    let _ = (order, times, customers);
}

fn main() {
    let _ = charge(Order, 1, vec![Customer]).queue("a").perform_async();
}
