//! Only a function is a task by attribute; a type is one by `impl Task`.

#[optimus::task(timeout = 5)]
struct Charge {
    order: u64,
}

fn main() {
    let _ = Charge { order: 1 }.order;
}
