//! A constant is not a task.

#[optimus::task]
const ORDER: u64 = 1;

fn main() {
    let _ = ORDER;
}
