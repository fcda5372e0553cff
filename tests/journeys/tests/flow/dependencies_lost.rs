//! Tasks that wait for others while workers die and Redis restarts.

use std::time::Duration;

use crate::common::{Bench, Running, completions::success_of};
use optimus_core::{
    BoxError, Call, Context, Key, QueueName, Task, TaskHandle, TaskOptions, TaskState, WorkerId,
    broker::{Broker, Completion},
};
use optimus_testkit::{RedisServer, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(60);
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Reserves what an order needs, in the queue of the warehouse.
#[derive(Serialize, Deserialize)]
struct Reserve {
    order: u32,
}

impl Task for Reserve {
    const NAME: &'static str = "reserve";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue("stock").outcome_ttl(WEEK)
    }

    fn biz_id(&self) -> Option<String> {
        Some(self.order.to_string())
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Ships an order, after [`Reserve`] of the same order.
#[derive(Serialize, Deserialize)]
struct Ship {
    order: u32,
}

impl Task for Ship {
    const NAME: &'static str = "ship";
    type Output = u32;

    async fn run(self, _: Context) -> Result<u32, BoxError> {
        Ok(self.order)
    }
}

fn ship(order: u32) -> Call<Ship> {
    Ship { order }.call().after(Key::of::<Reserve>(order.to_string()))
}

fn start<const N: usize>(bench: &Bench, queues: [&str; N]) -> Running {
    let worker = bench.worker().task_type::<Reserve>().task_type::<Ship>();
    bench.start(worker.queues(queues))
}

async fn becomes(handle: &TaskHandle<u32>, state: TaskState) {
    let is_there = async || handle.status().await.unwrap() == state;
    eventually(&format!("it is {state}"), SOON, is_there).await;
}

/// Waits until the warehouse knows which task waits for its own.
async fn asked(bench: &Bench) {
    let (broker, default) = (bench.client.broker(), QueueName::new("default").unwrap());
    let is_carried = async || broker.outgoing(&default).await.unwrap().is_empty();
    eventually("the ask is carried", SOON, is_carried).await;
}

/// Runs the only task of the warehouse in a worker that dies right after its report.
async fn reserve_and_die(bench: &Bench) {
    let (broker, stock) = (bench.client.broker(), QueueName::new("stock").unwrap());
    let (ghost, lease) = (WorkerId::generate("ghost", 1), Duration::from_secs(2));
    broker.register(&stock, &ghost, lease, "{}").await.unwrap();
    let claimed = broker.claim(&stock, &ghost, 1, 1).await.unwrap();
    let done = Completion {
        biz_id: Some("17".into()),
        outcome_ttl: Some(WEEK),
        ..success_of::<Reserve>(&claimed, &ghost)
    };
    let call = broker.complete_call(&stock, &ghost, &[done]);
    let answer = broker.run_all(vec![call]).await.remove(0).unwrap();
    assert!(
        Broker::read_report(answer).unwrap().posted,
        "an effect is posted for the task that waits elsewhere"
    );
}

on_both! {
    async fn another_worker_of_the_queue_carries_the_effects_of_a_dead_one(bench: Bench) {
        let waiting = bench.client.submit(ship(17)).await.unwrap();
        asked(&bench).await;
        bench.client.submit(Reserve { order: 17 }.call()).await.unwrap();
        reserve_and_die(&bench).await;
        let worker = start(&bench, ["default", "stock"]);
        assert_eq!(waiting.result_within(SOON).await.unwrap(), 17);
        worker.stop().await;
    }

    async fn a_worker_of_the_waiting_queue_alone_gets_the_effects_of_a_dead_worker(bench: Bench) {
        let waiting = bench.client.submit(ship(17)).await.unwrap();
        asked(&bench).await;
        bench.client.submit(Reserve { order: 17 }.call()).await.unwrap();
        reserve_and_die(&bench).await;
        let worker = start(&bench, ["default"]);
        assert_eq!(waiting.result_within(SOON).await.unwrap(), 17);
        worker.stop().await;
    }

    async fn a_worker_that_shuts_down_carries_the_effects_of_its_last_reports(bench: Bench) {
        let waiting = bench.client.submit(ship(17)).await.unwrap();
        asked(&bench).await;
        let reserved = bench.client.submit(Reserve { order: 17 }.call()).await.unwrap();
        let worker = start(&bench, ["stock"]);
        reserved.result_within(SOON).await.unwrap();
        worker.stop().await;
        assert_eq!(waiting.status().await.unwrap(), TaskState::Ready);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_redis_loses_no_wait() {
    let mut redis = RedisServer::builder().appendonly_always().start();
    let bench = Bench::at(&redis.url()).await;
    let early = bench.client.submit(ship(1)).await.unwrap();
    asked(&bench).await;
    let late = bench.client.submit(Reserve { order: 2 }.call()).await.unwrap();
    let stock = start(&bench, ["stock"]);
    late.result_within(SOON).await.unwrap();
    redis.restart();
    let second = bench.client.submit(ship(2)).await.unwrap();
    becomes(&early, TaskState::Blocked).await;
    redis.restart();
    bench.client.submit(Reserve { order: 1 }.call()).await.unwrap();
    let default = start(&bench, ["default"]);
    assert_eq!(early.result_within(SOON).await.unwrap(), 1);
    assert_eq!(second.result_within(SOON).await.unwrap(), 2);
    stock.stop().await;
    default.stop().await;
}
