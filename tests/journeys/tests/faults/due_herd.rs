//! Many idle workers and many due times, of tasks and of schedules. One worker waits for each due
//! time, and no task waits long.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{Bench, Raw, Running, script_calls};
use optimus_core::{
    BoxError, Context, DataKey, Due, Gate, QueueName, Schedule, Task, broker::Broker,
    store_schedule,
};
use optimus_testkit::{RedisServer, Signal, eventually};
use serde::{Deserialize, Serialize};

const WORKERS: usize = 20;
const TASKS: u32 = 100;
/// Ten times what one look at schedules returns.
const SCHEDULES: u64 = 320;
const APART: Duration = Duration::from_millis(20);
/// The time from the submit of the first task to its due time.
const DUE: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
struct Ran {}

#[derive(Clone)]
struct Log {
    at: Arc<Mutex<Vec<Instant>>>,
    ran: Signal,
}

impl Task for Ran {
    const NAME: &'static str = "ran";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Log>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let log: Log = ctx.data().unwrap();
        log.at.lock().unwrap().push(Instant::now());
        log.ran.hit();
        Ok(())
    }
}

async fn are_workers(bench: &Bench, raw: &mut Raw, count: usize) {
    let workers = bench.key("default", "workers");
    let are_there = async || raw.run(&format!("ZRANGE {workers} 0 -1")).await.len() == count;
    eventually("all workers are registered", DUE, are_there).await;
}

async fn is_waited_for(bench: &Bench, raw: &mut Raw) {
    let meta = bench.key("default", "meta");
    let has_timer = async || !raw.run(&format!("HGET {meta} timer")).await.is_empty();
    eventually("a worker waits for the due time", DUE, has_timer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_time_wakes_one_of_many_idle_workers() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let log = Log { at: Arc::default(), ran: Signal::new() };
    let worker = || bench.worker().lease(Duration::from_secs(60)).poll(Duration::from_secs(60));
    let start = || bench.start(worker().task_type::<Ran>().data(log.clone()).concurrency(4));
    let workers: Vec<Running> = (0..WORKERS).map(|_| start()).collect();
    let submitted_at = Instant::now();
    let due = |number: u32| DUE + APART * number;
    let calls = (0..TASKS).map(|number| Ran {}.call().due(Due::In(due(number))));
    bench.client.submit_all(calls).await.unwrap();
    let mut raw = bench.raw().await;
    are_workers(&bench, &mut raw, WORKERS).await;
    is_waited_for(&bench, &mut raw).await;
    let before = script_calls(&mut raw).await;
    log.ran.wait_for(TASKS.into()).await;
    let took = script_calls(&mut raw).await - before;

    // The scripts are a claim and a report for each task, and some polls of the other workers.
    assert!(took < 6 * u64::from(TASKS), "{took} scripts for {TASKS} tasks, {WORKERS} workers");
    let mut late: Vec<Duration> = (0..TASKS)
        .zip(log.at.lock().unwrap().iter())
        .map(|(number, at)| at.duration_since(submitted_at).saturating_sub(due(number)))
        .collect();
    late.sort();
    assert!(
        late[late.len() / 2] < Duration::from_millis(200),
        "half of the tasks start later than {late:?}"
    );
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_task_starts_soon_although_the_worker_that_waited_for_it_is_gone() {
    let bench = Bench::on_redis().await;
    let log = Log { at: Arc::default(), ran: Signal::new() };
    // Within the poll interval, only the backup poll of another worker can start the task.
    let worker = || bench.worker().lease(Duration::from_secs(60)).poll(Duration::from_secs(60));
    let start = || bench.start(worker().task_type::<Ran>().data(log.clone()).concurrency(4));
    let mut raw = bench.raw().await;
    let (first, submitted_at) = (start(), Instant::now());
    bench.client.submit(Ran {}.call().due(Due::In(DUE))).await.unwrap();
    is_waited_for(&bench, &mut raw).await;
    let second = start();
    are_workers(&bench, &mut raw, 2).await;
    first.stop().await;
    log.ran.wait_for(1).await;
    let late = submitted_at.elapsed().saturating_sub(DUE);
    assert!(late < Duration::from_secs(2), "{late:?} late");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_schedules_of_one_instant_take_few_exchanges() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let (broker, queue): (&Broker, _) = (bench.client.broker(), QueueName::new("default").unwrap());
    broker.announce(&queue).await.unwrap();
    let past = broker.at(broker.now_ms().await.unwrap() - 105_000);
    for n in 0..SCHEDULES {
        let schedule = Schedule::every(format!("s{n}"), Duration::from_secs(100));
        store_schedule(&past, &schedule.call(Ran {}.call()).check().unwrap()).await.unwrap();
    }
    // The worker must make no calls for their tasks.
    bench.client.gate("default", Gate::Queue).pause("the test", "it counts calls").await.unwrap();
    let (mut raw, schedules) = (bench.raw().await, bench.key("default", "schedules"));
    let (calls, reads) = (script_calls(&mut raw).await, raw.info("total_reads_processed").await);
    let log = Log { at: Arc::default(), ran: Signal::new() };
    let worker = bench.start(bench.worker().task_type::<Ran>().data(log));
    let (mut polls, now) = (0, past.now_ms().await.unwrap() + 105_000);
    eventually("all were submitted", DUE * 10, async || {
        polls += 1;
        raw.run(&format!("ZRANGEBYSCORE {schedules} 0 {now} LIMIT 0 1")).await.is_empty()
    })
    .await;
    let reads = raw.info("total_reads_processed").await - reads - polls;
    let calls = script_calls(&mut raw).await - calls;
    // A call for each task and for each look, and those with which a worker starts.
    assert!((SCHEDULES..SCHEDULES + 80).contains(&calls), "{calls} scripts");
    // The first batch teaches the server the script.
    assert!(reads < SCHEDULES / 2, "{reads} exchanges, {calls} scripts");
    worker.stop().await;
}
