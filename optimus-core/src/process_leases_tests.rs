//! A process is lost when a lease of it is over, and only then.

use optimus_testkit::{SharedRedis, eventually, namespace, shared_redis};

use super::*;
use crate::{Client, Sampler, WorkerId, broker::Attendance};

const PATIENCE: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const LISTED: Duration = Duration::from_secs(600);
const QUEUES: [&str; 2] = ["mail", "video"];
/// What a process says of itself that runs six tasks.
const ABOUT: &str =
    r#"{"host":"vm","pid":7,"started_ms":1000,"concurrency":8,"queues":["mail","video"]}"#;
const DOING: &str = r#"{"slots":8,"busy":6,"running":[]}"#;

/// A namespace of a real Redis.
struct Bench {
    redis: SharedRedis,
    namespace: String,
    client: Client,
}

impl Bench {
    async fn new() -> Self {
        let (redis, namespace) = (shared_redis(), namespace());
        let client = Client::builder(redis.url()).namespace(&namespace).connect().await.unwrap();
        Self { redis, namespace, client }
    }

    /// Runs a command on the key of the workers of a queue.
    fn raw(&self, verb: &str, queue: &str, rest: &[&str]) {
        let mut connection =
            redis::Client::open(self.redis.url()).unwrap().get_connection().unwrap();
        let key = format!("{{{}:{queue}:0}}:workers", self.namespace);
        redis::cmd(verb).arg(key).arg(rest).exec(&mut connection).unwrap();
    }
}

/// Says that a process is there, as it did so long ago.
async fn attends(bench: &Bench, id: &WorkerId, ago: Duration) {
    let broker = bench.client.broker();
    let past = broker.now_ms().await.unwrap() - u64::try_from(ago.as_millis()).unwrap();
    let attendance = Attendance { id, gone_after: LISTED, description: ABOUT, doing: DOING };
    broker.at(past).attend(&Broker::fleet(), attendance).await.unwrap();
}

async fn registers(bench: &Bench, id: &WorkerId, leases: [Duration; 2]) {
    for (queue, lease) in QUEUES.into_iter().zip(leases) {
        let queue = QueueName::new(queue).unwrap();
        bench.client.broker().register(&queue, id, lease, ABOUT).await.unwrap();
    }
}

/// Reads which processes are lost, in the order of their ids.
async fn lost(bench: &Bench) -> Vec<bool> {
    let rows = bench.client.inspector().processes(None, 100).await.unwrap().rows;
    rows.iter().map(|process| process.is_lost).collect()
}

#[tokio::test]
async fn a_process_is_lost_when_a_lease_is_over_and_not_when_it_is_idle() {
    let bench = Bench::new().await;
    let [dead, idle] = ["vm-7-aaaaaaaa", "vm-7-bbbbbbbb"].map(WorkerId::from_stored);
    registers(&bench, &dead, [SHORT, LEASE]).await;
    registers(&bench, &idle, [LEASE, LEASE]).await;
    attends(&bench, &dead, Duration::ZERO).await;
    attends(&bench, &idle, Duration::from_secs(200)).await;
    eventually("one lease is over", PATIENCE, async || lost(&bench).await[0]).await;
    assert_eq!(lost(&bench).await, [true, false], "the idle one has said nothing for 200 s");
}

#[tokio::test]
async fn a_process_that_goes_on_under_a_new_id_is_not_lost() {
    let bench = Bench::new().await;
    let [first, renewed] = ["vm-7-aaaaaaaa", "vm-7-cccccccc"].map(WorkerId::from_stored);
    attends(&bench, &first, Duration::ZERO).await;
    registers(&bench, &first, [SHORT, LEASE]).await;
    eventually("its lease is over", PATIENCE, async || lost(&bench).await == [true]).await;
    let mail = QueueName::new("mail").unwrap();
    let broker = bench.client.broker();
    let another = ABOUT.replace("1000", "2000");
    broker.register(&mail, &WorkerId::from_stored("vm-7-dddddddd"), LEASE, &another).await.unwrap();
    // It is another process, which gives the first one a lease of grace, as nobody has watched.
    eventually("the grace is over", PATIENCE, async || lost(&bench).await == [true]).await;
    broker.register(&mail, &renewed, LEASE, ABOUT).await.unwrap();
    assert_eq!(lost(&bench).await, [false]);
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_does_not_make_its_processes_lost() {
    let bench = Bench::new().await;
    let id = WorkerId::from_stored("vm-7-aaaaaaaa");
    attends(&bench, &id, Duration::ZERO).await;
    registers(&bench, &id, [LEASE, LEASE]).await;
    let [mail, video] = QUEUES;
    bench.raw("DEL", mail, &[]);
    assert_eq!(lost(&bench).await, [true]);
    bench.raw("SET", mail, &["x"]);
    assert_eq!(lost(&bench).await, [false], "the lease in the other queue counts");
    bench.raw("DEL", video, &[]);
    bench.raw("SET", video, &["x"]);
    assert_eq!(lost(&bench).await, [false], "it was heard from a moment ago");
    attends(&bench, &id, Duration::from_secs(400)).await;
    assert_eq!(lost(&bench).await, [true]);
}

#[tokio::test]
async fn slots_of_a_process_whose_lease_is_over_are_not_counted() {
    let bench = Bench::new().await;
    let id = WorkerId::from_stored("vm-7-aaaaaaaa");
    registers(&bench, &id, [SHORT, SHORT]).await;
    attends(&bench, &id, Duration::ZERO).await;
    let names = QUEUES.map(|queue| QueueName::new(queue).unwrap()).to_vec();
    let mut sampler = Sampler::new(bench.client.inspector(), names, 10, LEASE);
    eventually("its lease is over", PATIENCE, async || lost(&bench).await == [true]).await;
    let sample = sampler.sample().await.unwrap();
    assert_eq!((sample.processes, sample.slots_busy, sample.slots_allowed), (0, 0, 0));
    assert!(sample.queues.iter().all(|queue| (queue.processes, queue.slots) == (0, 0)));
    assert_eq!(sample.process_rows.len(), 1, "it is still listed");
    registers(&bench, &id, [LEASE, LEASE]).await;
    let sample = sampler.sample().await.unwrap();
    assert_eq!((sample.processes, sample.slots_busy, sample.slots_allowed), (1, 6, 8));
    assert!(sample.queues.iter().all(|queue| (queue.processes, queue.slots) == (1, 8)));
}
