//! The time limit of a submit while Redis is down.

use std::time::{Duration, Instant};

use crate::common::{Bench, Double};
use optimus_core::{Call, Client, Error, Task};
use optimus_testkit::RedisServer;

const TIMEOUT: Duration = Duration::from_secs(2);
/// The limit of a test: a second more, and another second for a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(4);

async fn client(server: &RedisServer) -> Client {
    let bench = Bench::at(&server.url()).await;
    let client = bench.client_builder().submit_timeout(TIMEOUT).connect().await.unwrap();
    client.submit(Double { number: 1 }.call()).await.unwrap();
    client
}

/// Returns whether the error is one of the expected ones. A submit that was written just before
/// Redis went down may have been executed.
fn is_typed(problem: &Error) -> bool {
    problem.is_unavailable() || problem.is_unknown_outcome()
}

/// Returns calls of many queues, more than can be under way at once.
fn calls() -> impl Iterator<Item = Call<Double>> {
    (0..40).map(|number| Double { number }.call().queue(format!("q{number}")))
}

async fn answered_in_time(client: Client) -> Vec<Error> {
    let begun = Instant::now();
    let answers = futures_util::future::join_all(calls().map(|call| client.submit(call))).await;
    assert!(begun.elapsed() < ANSWERED_WITHIN, "{:?}", begun.elapsed());
    answers.into_iter().map(|answer| answer.expect_err("Redis is down")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_submits_to_a_redis_that_is_gone_are_answered_in_time() {
    let mut server = RedisServer::start();
    let client = client(&server).await;
    server.kill();
    let problems = answered_in_time(client).await;
    assert!(problems.iter().all(is_typed), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_submits_to_a_frozen_redis_are_answered_in_time() {
    let server = RedisServer::start();
    let client = client(&server).await;
    server.pause();
    let problems = answered_in_time(client).await;
    server.resume();
    assert!(problems.iter().all(is_typed), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_all_gives_up_as_a_whole() {
    let mut server = RedisServer::start();
    let client = client(&server).await;
    server.kill();
    let begun = Instant::now();
    let problem = client.submit_all(calls()).await.unwrap_err();
    assert!(begun.elapsed() < ANSWERED_WITHIN, "{:?}", begun.elapsed());
    assert!(problem.answers.iter().all(Result::is_err));
    assert!(is_typed(&problem.first), "{}", problem.first);
}
