//! A task is heard of at once: none of these workers would find it by polling.

mod common;

use std::time::Duration;

use common::{Bench, Double, Gate};
use optimus_core::{BoxError, Client, Context, DataKey, Task};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);
const NEVER: Duration = Duration::from_secs(3600);

/// Submits another of its kind, until the gate is open.
#[derive(Serialize, Deserialize)]
struct Again {}

impl Task for Again {
    const NAME: &'static str = "again";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>(), DataKey::of::<Client>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let (gate, client): (Gate, Client) = (ctx.data().unwrap(), ctx.data().unwrap());
        gate.began.hit();
        if gate.open.hits() == 0 {
            client.submit(Again {}.call().queue("busy")).await?;
        }
        Ok(())
    }
}

/// So many tasks of one queue, each of which submits the next, and now and then one of another.
async fn quiet_beside_busy(bench: &Bench, concurrency: usize, tasks: u64) {
    let gate = Gate::new();
    let builder = bench.worker().poll(NEVER).queues(["busy", "quiet"]).concurrency(concurrency);
    let builder = builder.task_type::<Again>().task_type::<Double>();
    let worker = bench.start(builder.data(gate.clone()).data(bench.client.clone()));
    let calls = (0..tasks).map(|_| Again {}.call().queue("busy"));
    bench.client.submit_all(calls).await.unwrap();
    for number in 1..=20 {
        gate.began.wait_for(2 * tasks * number).await;
        let number = i64::try_from(number).unwrap();
        let handle = bench.client.submit(Double { number }.call().queue("quiet")).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    gate.open.hit();
    worker.stop().await;
}

on_both! {
    async fn a_task_of_a_quiet_queue_runs_while_another_keeps_a_few_slots_busy(bench: Bench) {
        quiet_beside_busy(&bench, 4, 8).await;
    }

    async fn a_task_of_a_quiet_queue_runs_while_another_keeps_many_slots_busy(bench: Bench) {
        quiet_beside_busy(&bench, 128, 600).await;
    }

    async fn each_of_many_tasks_that_come_one_by_one_is_heard_of(bench: Bench) {
        let builder = bench.worker().poll(NEVER).task_type::<Double>().concurrency(4);
        let worker = bench.start(builder);
        let clients = 8;
        let mut submitting = tokio::task::JoinSet::new();
        for _ in 0..clients {
            let client = bench.client.clone();
            submitting.spawn(async move {
                for number in 0..200 {
                    let handle = client.submit(Double { number }.call()).await.unwrap();
                    assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
                }
            });
        }
        submitting.join_all().await;
        worker.stop().await;
    }
}
