//! Measures the parts of a task's path that need no Redis: a call becomes a submission, a claim's
//! reply becomes grants, stored text becomes a record, and its arguments become a handler's
//! arguments.

use std::hint::black_box;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use optimus::{Submit as _, TaskId};
use optimus_core::{
    AttemptFacts, Context, Data, QueueName, Ran, TaskDefinition, TaskRecord,
    broker::{Broker, Reply},
};

/// The bytes of arguments: the usual size, and the largest size that a claim returns directly.
const PAYLOADS: [usize; 2] = [200, 16 * 1024];

#[optimus::task]
async fn work(number: u64, text: String) {
    black_box((number, text));
}

fn arguments(payload: usize) -> (u64, String) {
    (123_456, "x".repeat(payload - r#"{"number":123456,"text":""}"#.len()))
}

fn encode(criterion: &mut Criterion) {
    criterion.bench_function("id", |bencher| {
        let queue = QueueName::new("default").expect("a valid name");
        bencher.iter(|| TaskId::new(queue.clone()));
    });
    let mut group = criterion.benchmark_group("encode");
    for payload in PAYLOADS {
        group.throughput(Throughput::Bytes(payload as u64));
        group.bench_function(payload.to_string(), |bencher| {
            let (number, text) = arguments(payload);
            let call = || work(number, text.clone());
            bencher.iter(|| call().into_submission().expect("plain arguments"));
        });
    }
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for payload in PAYLOADS {
        let (number, text) = arguments(payload);
        let stored = format!(r#"{{"t":"work"}}{}{{"number":{number},"text":"{text}"}}"#, '\n');
        group.throughput(Throughput::Bytes(payload as u64));
        group.bench_function(payload.to_string(), |bencher| {
            let stored = || black_box(stored.clone().into_bytes());
            bencher.iter(|| TaskRecord::decode(stored()).expect("a record"));
        });
    }
}

/// Converts a claim's reply from bytes to grants.
fn claim_reply(criterion: &mut Criterion) {
    let queue = QueueName::new("default").expect("a valid name");
    let (number, text) = arguments(PAYLOADS[0]);
    let record = format!(r#"{{"t":"work"}}{}{{"number":{number},"text":"{text}"}}"#, '\n');
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let mut group = criterion.benchmark_group("claim_reply");
    for tasks in [1, 128] {
        let token = bulk("OK") + &bulk("1:1740800000726016");
        let mut reply =
            format!("*{}\r\n{token}:1700000000000\r\n:1\r\n:-1\r\n:{tasks}\r\n", 6 + 2 * tasks);
        reply.extend((0..tasks).map(|_| bulk(&TaskId::new(queue.clone()).stored())));
        reply.extend((0..tasks).map(|_| bulk(&record)));
        group.throughput(Throughput::Elements(tasks as u64));
        group.bench_function(tasks.to_string(), |bencher| {
            bencher.iter(|| {
                let reply = Reply::from_bytes("claim", black_box(reply.as_bytes()));
                let claimed = reply.and_then(|reply| Broker::read_claim(&queue, reply));
                assert_eq!(claimed.expect("a claim's reply").grants.len(), tasks);
            });
        });
    }
}

/// Does the work of a worker for a task between claim and report, without the bookkeeping.
fn execute(criterion: &mut Criterion) {
    let definition = TaskDefinition::registered().next().expect("the task above is registered");
    let id = TaskId::new(QueueName::new("default").expect("a valid name"));
    let data = Arc::new(Data::new());
    let mut group = criterion.benchmark_group("execute");
    for payload in PAYLOADS {
        let (number, text) = arguments(payload);
        let stored = format!(r#"{{"number":{number},"text":"{text}"}}"#);
        group.throughput(Throughput::Bytes(payload as u64));
        group.bench_function(payload.to_string(), |bencher| {
            bencher.iter(|| {
                let deadline = Instant::now() + Duration::from_secs(600);
                let ctx = Context::new(AttemptFacts::first(id.clone(), deadline), data.clone());
                let run = definition.run(black_box(stored.as_bytes()), ctx, Duration::ZERO);
                let mut run = run.expect("the record has valid arguments");
                let polled = run.as_mut().poll(&mut task::Context::from_waker(Waker::noop()));
                assert!(
                    matches!(polled, Poll::Ready(Ok(Ran::All(None)))),
                    "the handler waits for nothing"
                );
            });
        });
    }
}

criterion_group!(benches, encode, decode, claim_reply, execute);
criterion_main!(benches);
