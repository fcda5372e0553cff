//! The attribute makes only functions tasks; `impl Task` makes a type a task.

#[optimus::task(timeout = 5)]
struct Charge {
    order: u64,
}

fn main() {
    let _ = Charge { order: 1 }.order;
}
