//! A worker runs tasks, and neither a plain function nor a call is a task.

use optimus::Worker;

async fn send(to: String) {
    let _ = to;
}

fn count() -> u32 {
    7
}

#[optimus::task]
async fn public(number: u64) {
    let _ = number;
}

fn main() {
    let _ = Worker::builder("memory://m").task(send).task(count).task(7);
    let _ = Worker::builder("memory://m").task(public(1));
}
