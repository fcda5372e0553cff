//! An `impl` is not a task, nor are its functions.

struct Shop;

#[optimus::task]
impl Shop {
    fn charge(_order: u64) {}
}

fn main() {
    Shop::charge(1);
}
