//! Names that are keywords: the JSON key, the task's name and templates omit `r#`.
#![deny(warnings)]

use optimus::{Task, TaskFn};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    r#type: String,
}

#[optimus::task(biz_id = "{type}/{order.type}")]
async fn r#move(r#type: u8, order: Order) -> Result<String, String> {
    Ok(format!("{} {}", r#type, order.r#type))
}

fn check<A, F: TaskFn<A>>(_: F) {
    let json = r#"{"type":3,"order":{"type":"x"}}"#;
    let task: F::Task = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&task).unwrap(), json);
    assert_eq!(F::Task::NAME, "move");
    assert_eq!(task.biz_id().unwrap(), "3/x");
}

#[tokio::main]
pub(super) async fn main() {
    check(r#move);
    let order = Order { r#type: "x".to_owned() };
    assert_eq!(r#move(3, order).perform_inline().await.unwrap(), "3 x");
    let order = Order { r#type: "y".to_owned() };
    assert_eq!(move_body(4, order).await.unwrap(), "4 y");
}
