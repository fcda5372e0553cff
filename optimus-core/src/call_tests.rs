//! Tests of [`Call`] and [`ErasedCall`].

use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    data::DataKey,
    id::{QueueName, TaskId},
};

#[derive(Serialize, Deserialize)]
struct Remaining {}

impl Task for Remaining {
    const NAME: &'static str = "remaining";
    type Output = Duration;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<u8>()]
    }

    async fn run(self, ctx: Context) -> Result<Duration, BoxError> {
        Ok(ctx.remaining())
    }
}

#[test]
fn each_submit_of_an_erased_call_is_a_separate_task_unless_the_call_has_an_id() {
    let submitted = |call: &ErasedCall| call.clone().into_submission().unwrap().id.clone();
    let call = Remaining {}.call().erase().unwrap();
    assert_ne!(submitted(&call), submitted(&call));
    let id = TaskId::new(QueueName::new("q").unwrap());
    let call = Remaining {}.call().id(id.clone()).erase().unwrap();
    assert_eq!((submitted(&call), submitted(&call)), (id.clone(), id));
}

#[tokio::test]
async fn a_task_that_is_run_inline_has_its_whole_timeout_and_needs_its_data() {
    let hour = Duration::from_secs(3600);
    let call = || Remaining {}.call().timeout(hour);
    let left = call().perform_inline_with(Data::new().with(1_u8)).await.unwrap();
    assert!(left > hour / 2 && left <= hour, "{left:?}");
    let problem = call().perform_inline().await.unwrap_err();
    assert!(problem.to_string().contains("u8"), "{problem}");
}
