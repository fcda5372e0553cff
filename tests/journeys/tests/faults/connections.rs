//! The number of a worker's connections, and the worker's behaviour without them.

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, Gate, Raw, Wait, log::Log};
use optimus_core::{BoxError, Client, Context, Due, QueueName, Task};
use optimus_testkit::{LogEvent, RedisServer, eventually};
use serde::{Deserialize, Serialize};
use tracing::{Level, subscriber::set_default};

const SOON: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_secs(1);
/// The connections of a worker: for turns, for maintenance, for the wait for work, and for the wait
/// for cancels.
const CONNECTIONS: usize = 4;
const QUEUES: usize = 200;

/// A task that adds a line to its log.
#[derive(Serialize, Deserialize)]
struct Says {}

/// The text of the line.
const SAID: &str = "nothing-else-has-this-text";

impl Task for Says {
    const NAME: &'static str = "says";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.log(SAID);
        Ok(())
    }
}

/// Returns the ids of the server's clients whose entry contains this text.
async fn clients(raw: &mut Raw, which: &str) -> Vec<String> {
    let list = String::from_utf8(raw.run("CLIENT LIST").await.remove(0)).unwrap();
    let found = list.lines().filter(|line| line.contains(which));
    found.map(|line| line.split([' ', '=']).nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_url_that_names_the_newer_protocol_works() {
    let server = RedisServer::start();
    let bench = Bench::at(&format!("{}?protocol=resp3", server.url())).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let call = Double { number: 1 }.call();
    let queue = QueueName::new("default").unwrap();
    let handle = bench.client.submit(call.due(Due::In(Duration::from_millis(1)))).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    let inspector = bench.client.inspector();
    assert_eq!(inspector.queues().await.unwrap(), slice::from_ref(&queue));
    assert_eq!(inspector.counts(&queue).await.unwrap().recent_successes, 1);
    assert_eq!(inspector.workers(&queue).await.unwrap().len(), 1);
    assert!(inspector.server().await.unwrap().appendfsync.is_some());
    worker.stop().await;
}

#[tokio::test]
async fn the_error_of_a_redis_without_room_for_a_client_names_what_to_raise() {
    let server = RedisServer::builder().arg("--maxclients", "1").start();
    let first = Raw::connect(&server.url()).await;
    for database in ["", "?db=1"] {
        let url = format!("{}{database}", server.url());
        let problem = Client::connect(&url).await.expect_err("the server accepts no more clients");
        assert!(problem.is_unavailable(), "{problem}");
        assert!(problem.to_string().contains("maxclients"), "{problem}");
    }
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_has_four_connections_however_many_queues_it_serves() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let queue = |n| format!("queue-{n}");
    let handles = async |numbers: std::ops::Range<usize>| {
        let call = |n: usize| Double { number: 1 }.call().queue(queue(n));
        bench.client.submit_all(numbers.map(call)).await.unwrap()
    };
    // The client already has its connections for submits and results.
    drop(handles(0..QUEUES).await);
    let before = clients(&mut raw, "").await.len();

    let builder = bench.worker().task_type::<Double>().queues((0..QUEUES).map(queue));
    let worker = bench.start(builder);
    eventually("all tasks have run", SOON, async || {
        let mut left = 0;
        for n in 0..QUEUES {
            let name = optimus_core::QueueName::new(queue(n)).unwrap();
            left += bench.client.inspector().counts(&name).await.unwrap().ready;
        }
        left == 0
    })
    .await;
    eventually("both waits have begun", SOON, async || {
        clients(&mut raw, "cmd=blpop").await.len() == 2
    })
    .await;

    let connections = clients(&mut raw, "").await.len() - before;
    assert!(connections <= CONNECTIONS, "{connections} connections");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_gets_no_connection_to_wait_on_polls() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let gate = Gate::new();
    let builder = bench.worker().poll(POLL).task_type::<Wait>().data(gate.clone());
    let worker = bench.start(builder);
    eventually("both waits have begun", SOON, async || {
        clients(&mut raw, "cmd=blpop").await.len() == 2
    })
    .await;
    raw.run("CONFIG SET maxclients 1").await;
    for id in clients(&mut raw, "cmd=blpop").await {
        raw.run(&format!("CLIENT KILL ID {id}")).await;
    }
    for number in 1..=3 {
        let submitted_at = Instant::now();
        bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(number).await;
        let took = submitted_at.elapsed();
        assert!(took < POLL * 3, "the task was found only after {took:?}");
    }
    raw.run("CONFIG SET maxclients 1000").await;
    gate.open.hit();
    worker.stop().await;
}

#[tokio::test]
async fn a_listener_that_gets_no_connection_says_so_in_the_log() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let room_for_one = clients(&mut raw, "").await.len() + 1;
    raw.run(&format!("CONFIG SET maxclients {room_for_one}")).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let listeners = ["cancel listener", "work listener"];
    let say = |text: &str, error: &str| {
        let lines = log.lines.lock().unwrap();
        listeners.iter().all(|role| {
            let is_it = |line: &&LogEvent| line.get("role") == *role && line.message() == text;
            lines.iter().find(is_it).is_some_and(|line| line.get("error").contains(error))
        })
    };
    let are_without = async || say("no connection to Redis", "maxclients");
    eventually("both listeners name what to raise", SOON, are_without).await;
    raw.run("CONFIG SET maxclients 1000").await;
    let are_back = async || say("connected again", "");
    eventually("both listeners are connected", SOON, are_back).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_lines_of_tasks_go_over_no_connection_of_heartbeats() {
    let server = RedisServer::builder().tcp().start();
    let bench = Bench::at(&server.url()).await;
    let (mut monitor, mut raw) = (bench.raw().await, bench.raw().await);
    monitor.run("MONITOR").await;
    let worker = bench.start(bench.worker().task_type::<Says>());
    let handle = bench.client.submit(Says {}.call()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    worker.stop().await;
    raw.run("ECHO the-end").await;
    // The scripts that were called over each connection, and the connection of the line.
    let mut called = BTreeMap::<String, BTreeSet<String>>::new();
    let mut said = BTreeSet::new();
    loop {
        let line = monitor.next_line().await;
        if line.contains("the-end") {
            break;
        }
        let (_, rest) = line.split_once('[').unwrap();
        let (address, command) = rest.split_once(']').unwrap();
        let mut words = command.split_whitespace();
        let is_call = words.next() == Some("\"EVALSHA\"") && !address.ends_with("lua");
        if let Some(script) = words.next().filter(|_| is_call) {
            called.entry(address.to_owned()).or_default().insert(script.to_owned());
            if command.contains(SAID) {
                said.insert(address.to_owned());
            }
        }
    }
    let own = said.first().expect("the line was added");
    assert_eq!((said.len(), called[own].len()), (1, 1), "{said:?} {called:?}");
    assert!(called.values().any(|scripts| scripts.len() > 2), "heartbeats and others: {called:?}");
}
