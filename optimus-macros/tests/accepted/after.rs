//! A task can wait for several others, by their functions or by their names.

use std::time::Duration;

use optimus::{Prerequisite, PrerequisiteFailure, QueueName, Submit, TaskRecord};

mod stock {
    #[optimus::task(queue = "stock", biz_id = "{order}", outcome_ttl = "7d")]
    pub async fn allot(order: u64) {
        let _ = order;
    }
}

#[optimus::task(biz_id = "{order}", after = stock::allot, outcome_ttl = 60)]
async fn settle(order: u64) {
    let _ = order;
}

#[optimus::task(
    biz_id = "{order}",
    after = [stock::allot, settle, "legacy/check"],
    on_prerequisite_failure = "cancel",
    give_up_after = "1h",
)]
async fn hand_over(order: u64, parcels: u8) {
    let _ = (order, parcels);
}

pub(super) fn main() {
    let key = |queue: &str, task: &str| Prerequisite::Key {
        queue: QueueName::new(queue).unwrap(),
        task: task.into(),
        biz_id: "7".into(),
    };
    let call = hand_over(7, 2).give_up_after(Duration::from_secs(5));
    let record = call.into_submission().unwrap().stored();
    let record = TaskRecord::decode(record).unwrap();
    let after = record.after.unwrap();
    assert_eq!(
        after.prerequisites,
        [key("stock", "allot"), key("default", "settle"), key("legacy", "check")]
    );
    assert_eq!(after.on_failure, PrerequisiteFailure::Cancel);
    assert_eq!(after.give_up_after, Some(Duration::from_secs(5)));
}
