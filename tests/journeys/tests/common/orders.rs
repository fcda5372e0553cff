//! Tasks that reserve and ship orders, for tests of prerequisites.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_core::{
    BoxError, Call, Context, Counts, DataKey, Fatal, Key, QueueName, Task, TaskHandle, TaskOptions,
    TaskState,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Bench, Double, Gate, Running};

pub const SOON: Duration = Duration::from_secs(60);
pub const LONG: Duration = Duration::from_secs(3600);

/// The tasks that have run, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Reserves what an order needs. It can wait for the gate, or die while the gate is shut.
#[derive(Serialize, Deserialize)]
pub struct Reserve {
    pub order: String,
    pub waits: bool,
    pub dies: bool,
}

impl Task for Reserve {
    const NAME: &'static str = "reserve";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().outcome_ttl(LONG)
    }

    fn biz_id(&self) -> Option<String> {
        Some(self.order.clone())
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Log>(), DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let (log, gate): (Log, Gate) = (ctx.data().unwrap(), ctx.data().unwrap());
        if self.waits {
            gate.began.hit();
            gate.open.wait_for(1).await;
        }
        if self.dies && gate.open.hits() == 0 {
            return Err(Fatal::new("out of stock").into());
        }
        log.add(format!("reserve {}", self.order));
        Ok(())
    }
}

pub fn reserve(order: &str) -> Call<Reserve> {
    Reserve { order: order.to_owned(), waits: false, dies: false }.call()
}

pub fn doomed(order: &str) -> Call<Reserve> {
    Reserve { order: order.to_owned(), waits: false, dies: true }.call()
}

pub fn slow(order: &str) -> Call<Reserve> {
    Reserve { order: order.to_owned(), waits: true, dies: false }.call()
}

/// Ships an order, after [`Reserve`] of the same order.
#[derive(Serialize, Deserialize)]
pub struct Ship {
    order: String,
}

impl Task for Ship {
    const NAME: &'static str = "ship";
    type Output = String;

    fn biz_id(&self) -> Option<String> {
        Some(self.order.clone())
    }

    fn after(&self, biz_id: &str) -> Vec<Key> {
        vec![Key::of::<Reserve>(biz_id)]
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Log>()]
    }

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let log: Log = ctx.data().unwrap();
        log.add(format!("ship {}", self.order));
        Ok(self.order)
    }
}

pub fn ship(order: &str) -> Call<Ship> {
    Ship { order: order.to_owned() }.call()
}

/// A worker with the data of its tasks.
pub struct LoggedWorker {
    pub worker: Running,
    pub log: Log,
    pub gate: Gate,
}

impl LoggedWorker {
    pub fn of(bench: &Bench) -> Self {
        let (log, gate) = (Log::default(), Gate::new());
        let worker = start(bench, &log, &gate, ["default", "stock"]);
        Self { worker, log, gate }
    }
}

pub fn start<const N: usize>(bench: &Bench, log: &Log, gate: &Gate, queues: [&str; N]) -> Running {
    let worker = bench.worker().task_type::<Reserve>().task_type::<Ship>().task_type::<Double>();
    bench.start(worker.queues(queues).data(log.clone()).data(gate.clone()).concurrency(4))
}

pub async fn submit<T: Task>(bench: &Bench, call: Call<T>) -> TaskHandle<T::Output> {
    bench.client.submit(call).await.unwrap()
}

pub async fn state<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>) -> TaskState {
    handle.status().await.unwrap()
}

pub async fn becomes<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>, wanted: TaskState) {
    eventually(&format!("it is {wanted}"), SOON, async || state(handle).await == wanted).await;
}

pub async fn done<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>) -> T {
    handle.result_within(SOON).await.unwrap()
}

/// Waits until the workers have run a task, so they run ready tasks.
pub async fn others_run(bench: &Bench) {
    done(&submit(bench, Double { number: 1 }.call()).await).await;
}

/// Waits until the other queues know which tasks wait for theirs.
pub async fn asked(bench: &Bench) {
    asked_of(bench, "default").await;
}

/// Waits until a relay has carried the questions of a queue's tasks.
pub async fn asked_of(bench: &Bench, queue: &str) {
    let (broker, queue) = (bench.client.broker(), QueueName::new(queue).unwrap());
    let is_carried = async || broker.outgoing(&queue).await.unwrap().is_empty();
    eventually("the questions are carried", SOON, is_carried).await;
}

pub async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts("default").await.unwrap()
}
