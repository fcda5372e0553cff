//! No option is needed, and neither are parameters or a result.
#![deny(warnings)]

use optimus::{Task, TaskFn, TaskOptions};

#[optimus::task]
async fn nothing() {}

#[optimus::task()]
fn nothing_blocking() {}

fn check<A, F: TaskFn<A>>(_: F, name: &str) {
    let task: F::Task = serde_json::from_str("{}").unwrap();
    assert_eq!(serde_json::to_string(&task).unwrap(), "{}");
    assert_eq!(F::Task::NAME, name);
    assert_eq!(F::Task::options(), TaskOptions::new());
    assert_eq!(task.biz_id(), None);
}

#[tokio::main]
pub(super) async fn main() {
    check(nothing, "nothing");
    check(nothing_blocking, "nothing_blocking");
    let () = nothing().perform_inline().await.unwrap();
    let () = nothing_blocking().perform_inline().await.unwrap();
    let () = nothing_body().await;
    let () = nothing_blocking_body();
}
