//! What operators watch of all queues at once.

use std::time::Duration;

use crate::common::Bench;
use optimus_core::{
    BoxError, Call, Context, Due, Gate, Limit, QueueName, QueueOverview, Rate, Sampler, Schedule,
    Task, TaskId, Uuid, WorkerId, store_schedule,
};
use optimus_testkit::{RedisServer, eventually};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Send {}

impl Task for Send {
    const NAME: &'static str = "send";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// A call whose id was made so long ago.
fn made_ago(ago: Duration) -> Call<Send> {
    let now = TaskId::new(queue("default"));
    let (made_ms, rest) = (now.made_ms() - u64::try_from(ago.as_millis()).unwrap(), 80);
    let random = now.uuid().as_u128() & ((1 << rest) - 1);
    let uuid = Uuid::from_u128(u128::from(made_ms) << rest | random);
    Send {}.call().id(format!("default/{uuid}").parse().unwrap())
}

/// Submits a task, and writes into its entry of the ready list that it is ready for so long.
async fn submit_ready_for(bench: &Bench, ago: Duration) {
    let id = bench.client.submit(Send {}.call()).await.unwrap().id().clone();
    let since_ms = id.made_ms() - u64::try_from(ago.as_millis()).unwrap();
    let digit = |place| u32::try_from(since_ms / 36_u64.pow(place) % 36).unwrap();
    let stamp: String = (0..8).rev().map(|at| char::from_digit(digit(at), 36).unwrap()).collect();
    let (key, entry) = (bench.key("default", "ready"), format!("{stamp}:{}", id.stored()));
    bench.raw().await.run(&format!("LSET {key} -1 {entry}")).await;
}

async fn overview(bench: &Bench, name: &str) -> QueueOverview {
    bench.client.inspector().overview(&[queue(name)]).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_queue_with_a_key_of_another_type_is_marked_and_the_others_are_read() {
    let bench = Bench::on_redis().await;
    let queues = ["first", "foreign", "last"].map(queue);
    for name in &queues {
        bench.client.submit(Send {}.call().queue(name.clone())).await.unwrap();
    }
    for key in ["ready", "code_schedules", "delayed"] {
        let mut raw = bench.raw().await;
        raw.run(&format!("DEL {}", bench.key("foreign", key))).await;
        raw.run(&format!("SET {} x", bench.key("foreign", key))).await;
        let seen = bench.client.inspector().overview(&queues).await.unwrap();
        let ready: Vec<u64> = seen.iter().map(|seen| seen.counts.ready).collect();
        assert_eq!(ready, [1, 0, 1], "{key}");
        assert!(seen[0].problem.is_none() && seen[2].problem.is_none(), "{key}");
        let problem = seen[1].problem.as_ref().expect("it is marked").to_string();
        assert!(problem.contains("WRONGTYPE"), "{key}: {problem}");
        raw.run(&format!("DEL {}", bench.key("foreign", key))).await;
    }
}

/// Returns how many commands a server has run.
async fn commands(bench: &Bench) -> u64 {
    let stats = bench.raw().await.run("INFO commandstats").await.remove(0);
    let stats = String::from_utf8(stats).unwrap();
    let calls = stats.lines().filter_map(|line| line.split_once(":calls=")?.1.split(',').next());
    calls.map(|calls| calls.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn a_read_of_many_queues_costs_a_command_for_each_key_in_use_and_finds_new_ones() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let queues: Vec<_> = (0..60).map(|n| queue(&format!("queue-{n}"))).collect();
    for name in &queues {
        bench.client.submit(Send {}.call().queue(name.clone())).await.unwrap();
    }
    let mut sampler = Sampler::new(bench.client.inspector(), queues.clone(), 100, MINUTE);
    sampler.sample().await.unwrap();
    let before = commands(&bench).await;
    let sample = sampler.sample().await.unwrap();
    let (took, beside) = (commands(&bench).await - before, 20);
    // `meta`, and the length and the first entry of the ready list.
    assert!(took <= 60 * 3 + beside, "{took} commands");
    let ready = sample.queues.iter().map(|queue| queue.seen.counts.ready);
    assert_eq!(ready.sum::<u64>(), 60);
    let call = Send {}.call().queue(queues[7].clone()).due(Due::In(HOUR));
    let delayed = bench.client.submit(call).await.unwrap();
    let counts = sampler.sample().await.unwrap().queues[7].seen.counts.clone();
    assert_eq!((counts.ready, counts.delayed, counts.cancelled), (1, 1, 0));
    delayed.cancel().await.unwrap();
    let counts = sampler.sample().await.unwrap().queues[7].seen.counts.clone();
    assert_eq!((counts.ready, counts.delayed, counts.cancelled), (1, 0, 1));
    // A worker joins a queue that had none.
    let (broker, worker) = (bench.client.broker(), WorkerId::from_stored("w"));
    broker.register(&queues[9], &worker, HOUR, "{}").await.unwrap();
    assert_eq!(broker.claim(&queues[9], &worker, 1, 1).await.unwrap().grants.len(), 1);
    let counts = sampler.sample().await.unwrap().queues[9].seen.counts.clone();
    assert_eq!((counts.ready, counts.working), (0, 1));
    bench.client.submit(Send {}.call().queue(queues[9].clone())).await.unwrap();
    // `meta` does not show that there are tasks with a priority.
    for name in [&queues[8], &queues[59]] {
        bench.client.submit(Send {}.call().queue(name.clone()).priority(1)).await.unwrap();
    }
    let seen = sampler.sample().await.unwrap();
    let ready: Vec<_> = seen.queues.iter().map(|queue| queue.seen.counts.ready).collect();
    let expected: Vec<_> = (0..60).map(|n| if [8, 59].contains(&n) { 2 } else { 1 }).collect();
    assert_eq!(ready, expected);
}

#[tokio::test]
async fn a_limit_with_the_largest_burst_is_read() {
    let bench = Bench::on_redis().await;
    bench.client.submit(Send {}.call()).await.unwrap();
    let burst = u32::MAX;
    let limit = Limit::new().rate("1/d".parse::<Rate>().unwrap()).burst(burst);
    bench.client.gate("default", Gate::Queue).set(limit).await.unwrap();
    let seen = overview(&bench, "default").await;
    assert_eq!((seen.limit, seen.tokens), (Some(limit), Some(u64::from(burst))));
    let listed = bench.client.inspector().limits("default", 9).await.unwrap().remove(0);
    assert_eq!(listed.tokens, Some(u64::from(burst)));
}

fn is_about(oldest: Option<Duration>, ago: Duration) -> bool {
    oldest.is_some_and(|oldest| oldest >= ago && oldest < ago + MINUTE)
}

#[tokio::test]
async fn the_oldest_ready_task_is_seen_behind_newer_ones_with_a_higher_priority() {
    let bench = Bench::on_redis().await;
    bench.client.submit(Send {}.call().priority(5)).await.unwrap();
    assert!(is_about(overview(&bench, "default").await.oldest, Duration::ZERO));
    submit_ready_for(&bench, HOUR).await;
    assert!(is_about(overview(&bench, "default").await.oldest, HOUR), "without a priority");
    bench.client.submit(made_ago(HOUR * 2).priority(-100)).await.unwrap();
    assert!(is_about(overview(&bench, "default").await.oldest, HOUR * 2), "with a low one");
}

#[tokio::test]
async fn a_task_that_was_delayed_waits_since_it_is_ready() {
    let bench = Bench::on_redis().await;
    for _ in 0..2 {
        let due = Due::In(Duration::from_millis(1));
        bench.client.submit(made_ago(HOUR).due(due)).await.unwrap();
    }
    let is_due = async || overview(&bench, "default").await.due == 2;
    eventually("both are due", PATIENCE, is_due).await;
    let (broker, worker) = (bench.client.broker(), WorkerId::from_stored("w"));
    broker.register(&queue("default"), &worker, HOUR, "{}").await.unwrap();
    let claimed = broker.claim(&queue("default"), &worker, 1, 1).await.unwrap();
    assert_eq!(claimed.grants.len(), 1);
    for tombstones in 0..2 {
        let seen = overview(&bench, "default").await;
        assert_eq!(seen.counts.ready, 1);
        let oldest = seen.oldest.unwrap();
        assert!(oldest < MINUTE, "{oldest:?} with {tombstones} tombstones");
        bench.client.submit(made_ago(HOUR)).await.unwrap().cancel().await.unwrap();
    }
}

#[tokio::test]
async fn the_oldest_ready_task_is_seen_behind_cancelled_ones() {
    // A read passes about 1,000 entries of cancelled tasks.
    for cancelled in [300, 3_000] {
        let bench = Bench::on_redis().await;
        let calls = (0..cancelled).map(|_| Send {}.call());
        let handles = bench.client.submit_all(calls.collect::<Vec<_>>()).await.unwrap();
        let ids = handles.iter().map(|handle| handle.id().clone());
        for answer in bench.client.cancel_all(ids).await {
            answer.unwrap();
        }
        assert_eq!(overview(&bench, "default").await.oldest, None);
        submit_ready_for(&bench, HOUR).await;
        submit_ready_for(&bench, MINUTE).await;
        let oldest = overview(&bench, "default").await.oldest;
        assert!(is_about(oldest, HOUR), "{cancelled}: {oldest:?}");
    }
}

#[tokio::test]
async fn tasks_that_were_cancelled_are_not_before_one_that_is_explained() {
    let bench = Bench::on_redis().await;
    for _ in 0..4 {
        bench.client.submit(Send {}.call()).await.unwrap().cancel().await.unwrap();
    }
    let task = bench.client.submit(Send {}.call()).await.unwrap();
    let text = bench.client.inspector().explain(task.id()).await.unwrap().to_string();
    assert!(!text.contains("before it"), "{text}");
}

/// Stores a schedule, as a program of that release did so long ago.
async fn put_ago(bench: &Bench, ago: Duration, schedule: Schedule) {
    let broker = bench.client.broker();
    let past = broker.now_ms().await.unwrap() - u64::try_from(ago.as_millis()).unwrap();
    store_schedule(&broker.at(past), &schedule.check().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_schedule_that_was_removed_from_the_code_does_not_count_as_late() {
    let bench = Bench::on_redis().await;
    let gone = Schedule::every("gone", MINUTE).release("1.0.0").call(Send {}.call());
    put_ago(&bench, HOUR, gone).await;
    let lag = async || overview(&bench, "default").await.schedule_lag;
    assert!(lag().await > Some(MINUTE * 50), "no worker serves the queue");
    let worker = bench.start(bench.worker().task_type::<Send>());
    eventually("a worker leaves it alone", PATIENCE, async || lag().await.is_none()).await;
    // What is due behind it counts.
    let late = Schedule::every("late", MINUTE).release("1.0.0").call(Send {}.call());
    put_ago(&bench, MINUTE + MINUTE / 2, late).await;
    assert!(lag().await.is_some_and(|lag| lag > MINUTE / 3 && lag < MINUTE));
    worker.stop().await;
    assert!(lag().await > Some(MINUTE * 50));
}
