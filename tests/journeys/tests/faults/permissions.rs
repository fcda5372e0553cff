//! The Redis user of SECURITY.md. All features work with it, and a worker names missing
//! permissions.

use std::time::Duration;

use crate::common::{Bench, Double, Flaky, Raw};
use optimus_core::{CancelAnswer, Due, Task};
use optimus_testkit::{RedisServer, eventually, namespace};

const SOON: Duration = Duration::from_secs(20);
/// The permissions that a worker does not need.
const UNUSED: [&str; 3] = ["+info", "+config|get", "+wait"];

/// Returns the rules of SECURITY.md for this namespace.
fn rules(namespace: &str) -> Vec<String> {
    let text = include_str!("../../../../SECURITY.md");
    let line = text.lines().find(|line| line.contains("ACL SETUSER")).expect("the line");
    let rules = line.split_whitespace().skip(3);
    rules
        .map(|rule| match rule.strip_prefix('~') {
            Some(keys) => format!("~{}", keys.replace("optimus", namespace)),
            None => rule.to_owned(),
        })
        .collect()
}

async fn set_user(admin: &mut Raw, rules: &[String]) {
    admin.run(&format!("ACL SETUSER optimus reset {}", rules.join(" "))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_lives_work_under_the_documented_user() {
    let redis = RedisServer::builder().tcp().start();
    let namespace = namespace();
    let mut admin = Raw::connect(&redis.url()).await;
    set_user(&mut admin, &rules(&namespace)).await;
    let url = redis.url().replace("redis://", "redis://optimus:secret@");
    let bench = Bench::shared(&url, &namespace).await;
    let worker = bench.worker().task_type::<Double>().task_type::<Flaky>();
    let worker = bench.start(worker);
    let call = || Double { number: 21 }.call().biz_id("one").priority(2).expires_in(SOON);
    let handle = bench.client.submit(call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    let late = bench.client.submit(call().due(Due::In(SOON / 2))).await.unwrap();
    assert_eq!(late.cancel().await.unwrap(), CancelAnswer::Cancelled);
    bench.client.requeue(late.id()).await.unwrap();
    assert_eq!(late.result_within(SOON).await.unwrap(), 42);
    assert_eq!(bench.client.inspector().queues().await.unwrap().len(), 1);
    worker.stop().await;
    let denied = admin.run("ACL LOG").await;
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_names_each_permission_that_is_missing_and_changes_nothing() {
    let redis = RedisServer::builder().tcp().start();
    let namespace = namespace();
    let mut admin = Raw::connect(&redis.url()).await;
    let url = redis.url().replace("redis://", "redis://optimus:secret@");
    let all = rules(&namespace);
    let needed = |rule: &&String| rule.starts_with(['+', '~']) && !UNUSED.contains(&rule.as_str());
    for missing in all.iter().filter(needed) {
        let others: Vec<String> = all.iter().filter(|rule| *rule != missing).cloned().collect();
        set_user(&mut admin, &others).await;
        let worker = optimus_worker::Worker::builder(&url).namespace(&namespace).quiet();
        let worker = worker.only_named_tasks().task_type::<Double>().build().unwrap();
        let problem = worker.run_until(std::future::pending::<()>()).await.unwrap_err();
        let named = problem.to_string();
        assert!(named.contains(missing) || named.contains("'ping'"), "{missing}: {named}");
        let keys = format!("KEYS *{namespace}*");
        let left = format!("without {missing}, the worker leaves no key");
        eventually(&left, SOON, async || admin.run(&keys).await.is_empty()).await;
    }
    set_user(&mut admin, &all).await;
    let bench = Bench::shared(&url, &namespace).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let registered = async || {
        let queue = optimus_core::QueueName::new("default").unwrap();
        bench.client.inspector().workers(&queue).await.is_ok_and(|workers| !workers.is_empty())
    };
    eventually("the worker is registered", SOON, registered).await;
    worker.stop().await;
}

/// Redis refuses each command by itself, so a script would stop between two writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_user_may_not_finish_changes_nothing_and_works_with_the_permission() {
    let redis = RedisServer::builder().tcp().start();
    let namespace = namespace();
    let mut admin = Raw::connect(&redis.url()).await;
    let url = redis.url().replace("redis://", "redis://optimus:secret@");
    let all = rules(&namespace);
    set_user(&mut admin, &all).await;
    let Bench { client, .. } = Bench::shared(&url, &namespace).await;
    let counts = async || client.inspector().counts("default").await.unwrap();
    let call = || Double { number: 21 }.call();
    for missing in ["+rpush", "+zadd", "+zrem", "+hset", "+hdel"] {
        let cancelled = client.submit(call()).await.unwrap();
        cancelled.cancel().await.unwrap();
        let before = counts().await;
        let others: Vec<String> = all.iter().filter(|rule| *rule != missing).cloned().collect();
        set_user(&mut admin, &others).await;
        // The next connection may as well lead to another server, with other users.
        admin.run("CLIENT KILL TYPE normal SKIPME yes").await;
        let is_back = async || client.inspector().counts("default").await.is_ok();
        eventually("the client has another connection", SOON, is_back).await;
        let problems = [
            client.submit(call()).await.err(),
            client.submit(call().due(Due::In(SOON))).await.err(),
            client.requeue(cancelled.id()).await.err(),
        ];
        for problem in problems {
            let named = problem.expect(missing).to_string();
            assert!(named.contains(&format!("add to its ACL: {missing}")), "{missing}: {named}");
        }
        assert_eq!(counts().await, before, "without {missing}");
        set_user(&mut admin, &all).await;
        client.requeue(cancelled.id()).await.unwrap();
        client.submit(call()).await.unwrap();
        assert_eq!(counts().await.ready, before.ready + 2, "with {missing} again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_of_the_first_call_of_a_client_names_the_permission_to_add() {
    let redis = RedisServer::builder().tcp().start();
    let mut admin = Raw::connect(&redis.url()).await;
    let url = redis.url().replace("redis://", "redis://optimus:secret@");
    for missing in ["+evalsha", "+hset", "+rpush", "+hget"] {
        let namespace = namespace();
        let all = rules(&namespace);
        let others: Vec<String> = all.iter().filter(|rule| *rule != missing).cloned().collect();
        set_user(&mut admin, &others).await;
        let bench = Bench::shared(&url, &namespace).await;
        let problem = match bench.client.submit(Double { number: 21 }.call()).await {
            Err(problem) => problem,
            // A submit does not need this permission.
            Ok(handle) => handle.status().await.unwrap_err(),
        };
        assert!(problem.is_rejected(), "{missing}: {problem}");
        let named = problem.to_string();
        assert!(named.contains(&format!("add to its ACL: {missing}")), "{missing}: {named}");
    }
}
