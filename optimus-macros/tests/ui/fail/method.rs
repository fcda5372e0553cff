//! A task has no `self`: a worker has no object to call it on.

struct Shop;

impl Shop {
    #[optimus::task]
    async fn charge(&self, order: u64) {
        let _ = order;
    }
}

fn main() {
    let _ = Shop.charge(1).perform_async();
}
