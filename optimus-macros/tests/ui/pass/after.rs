//! A task can wait for several others, by their functions or by their names.

use std::time::Duration;

use optimus::{Prerequisite, PrerequisiteFailure, QueueName, Submit, TaskRecord};

mod stock {
    #[optimus::task(queue = "stock", biz_id = "{order}", outcome_ttl = "7d")]
    pub async fn reserve(order: u64) {
        let _ = order;
    }
}

#[optimus::task(biz_id = "{order}", after = stock::reserve, outcome_ttl = 60)]
async fn pay(order: u64) {
    let _ = order;
}

#[optimus::task(
    biz_id = "{order}",
    after = [stock::reserve, pay, "legacy/check"],
    on_prerequisite_failure = "cancel",
    give_up_after = "1h",
)]
async fn ship(order: u64, parcels: u8) {
    let _ = (order, parcels);
}

fn main() {
    let key = |queue: &str, task: &str| Prerequisite::Key {
        queue: QueueName::new(queue).unwrap(),
        task: task.into(),
        biz_id: "7".into(),
    };
    let call = ship(7, 2).give_up_after(Duration::from_secs(5));
    let record = call.into_submission().unwrap().stored();
    let record = TaskRecord::decode(record).unwrap();
    let after = record.after.unwrap();
    assert_eq!(
        after.prerequisites,
        [key("stock", "reserve"), key("default", "pay"), key("legacy", "check")]
    );
    assert_eq!(after.on_failure, PrerequisiteFailure::Cancel);
    assert_eq!(after.give_up_after, Some(Duration::from_secs(5)));
}
