//! A slow link, on which an exchange takes longer than a silent server may take. It costs only
//! time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::Bench;
use optimus_core::{BoxError, Call, Context, DataKey, QueueName, Task};
use optimus_testkit::{FaultProxy, Way, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(30);
/// The least bytes of each exchange here.
const MUCH: usize = 2_000_000;
/// The seconds that these bytes take. After 8 s, a silent server would be given up.
const SECONDS: usize = 11;

/// A task that returns this many bytes, and records that it has begun.
#[derive(Serialize, Deserialize)]
struct Answer {
    number: usize,
    bytes: usize,
    cargo: String,
}

#[derive(Clone, Default)]
struct Begun(Arc<Mutex<Vec<usize>>>);

impl Task for Answer {
    const NAME: &'static str = "answer";
    type Output = String;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Begun>()]
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let begun: Begun = ctx.data().unwrap();
        begun.0.lock().unwrap().push(self.number);
        Ok("x".repeat(self.bytes))
    }
}

fn answers(count: usize, bytes: usize, cargo: usize) -> impl Iterator<Item = Call<Answer>> {
    (0..count).map(move |number| Answer { number, bytes, cargo: "x".repeat(cargo) }.call())
}

/// Returns a bench, and another one behind a proxy. The proxy is fast until Redis knows the
/// scripts.
async fn ends() -> (Bench, FaultProxy, Bench) {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let far = Bench::shared(&proxy.url(), near.namespace()).await;
    (near, proxy, far)
}

/// Runs each of these calls once on a worker behind the proxy.
async fn run_all(way: Way, calls: impl Iterator<Item = Call<Answer>>) {
    let (near, proxy, far) = ends().await;
    let begun = Begun::default();
    let worker = far.worker().concurrency(256).result_limit(4 * MUCH);
    let worker = far.start(worker.task_type::<Answer>().data(begun.clone()));
    let first = near.client.submit(answers(1, 0, 0).next().unwrap()).await.unwrap();
    first.result_within(SOON).await.unwrap();
    begun.0.lock().unwrap().clear();
    proxy.rate(way, MUCH / SECONDS);
    let count = near.client.submit_all(calls).await.unwrap().len();
    let (inspector, queue) = (near.client.inspector(), QueueName::new("default").unwrap());
    eventually("all tasks succeed", SOON, async || {
        inspector.counts(&queue).await.unwrap().recent_successes == 1 + count as u64
    })
    .await;
    proxy.pass();
    worker.stop().await;
    let mut begun = begun.0.lock().unwrap().clone();
    begun.sort_unstable();
    assert_eq!(begun, (0..count).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_takes_long_is_processed() {
    let count = 128;
    run_all(Way::Down, answers(count, 0, MUCH / count)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_take_long_to_send_are_reported() {
    run_all(Way::Up, answers(1, MUCH, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_take_long_to_send_are_submitted() {
    let (_near, proxy, far) = ends().await;
    far.client.submit_all(answers(2, 0, 0)).await.unwrap();
    proxy.rate(Way::Up, MUCH / SECONDS);
    far.client.submit_all(answers(2, 0, MUCH / 2)).await.unwrap();
}
