//! A worker runs tasks, and a plain function is not a task.

use optimus::Worker;

async fn send(to: String) {
    let _ = to;
}

fn count() -> u32 {
    7
}

fn main() {
    let _ = Worker::builder("memory://m").task(send).task(count).task(7);
}
