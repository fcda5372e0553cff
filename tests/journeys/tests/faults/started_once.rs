//! A task that may start only once, whose worker ends before Redis has its report.

use crate::common::{Bench, Gate, died_of};
use optimus_core::{BoxError, Context, DataKey, OnLost, Reason, Task, TaskOptions};
use serde::{Deserialize, Serialize};

/// A task that starts at most once.
#[derive(Serialize, Deserialize)]
struct Once {}

impl Task for Once {
    const NAME: &'static str = "once";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().on_lost(OnLost::Dead).max_retry(0)
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let gate: Gate = ctx.data().unwrap();
        gate.began.hit();
        gate.open.wait_for(1).await;
        Ok(())
    }
}

#[tokio::test]
async fn a_worker_that_leaves_gives_back_no_task_that_may_start_only_once() {
    let (bench, gate) = (Bench::on_redis().await, Gate::new());
    let build = || bench.worker().task_type::<Once>().data(gate.clone());
    let once = bench.client.submit(Once {}.call()).await.unwrap();
    let worker = bench.start(build());
    gate.began.wait_for(1).await;
    // Redis refuses the report, and the worker holds it until it ends.
    let (mut raw, key) = (bench.raw().await, bench.key("default", "success"));
    raw.run(&format!("SET {key} odd")).await;
    gate.open.hit();
    worker.stop().await;
    raw.run(&format!("DEL {key}")).await;
    let other = bench.start(build());
    died_of(&once, Reason::Lost).await;
    assert_eq!(gate.began.hits(), 1, "it has started once");
    other.stop().await;
}
