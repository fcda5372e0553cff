//! The Redis user of SECURITY.md. All features work with it, and a worker names missing
//! permissions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::common::{Bench, Double, Flaky, Raw, completions::success_of, log::Log};
use optimus_core::{BoxError, CancelAnswer, Client, Credentials, Due, QueueName, Task, WorkerId};
use optimus_testkit::{LogEvent, RedisServer, eventually, namespace};
use optimus_worker::Worker;
use tracing::{Level, subscriber::set_default};

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

async fn set_user(admin: &mut Raw, user: &str, rules: &[String]) {
    admin.run(&format!("ACL SETUSER {user} reset {}", rules.join(" "))).await;
}

/// Returns all rules but one.
fn without(missing: &str, rules: &[String]) -> Vec<String> {
    rules.iter().filter(|rule| *rule != missing).cloned().collect()
}

/// A private server with the user of SECURITY.md, whose permissions a test changes.
struct Limited {
    redis: RedisServer,
    namespace: String,
    admin: Raw,
    /// The URL with which the user logs in.
    url: String,
    rules: Vec<String>,
}

impl Limited {
    /// Starts a server on which the user has all that it needs.
    async fn start() -> Self {
        let redis = RedisServer::builder().tcp().start();
        let namespace = namespace();
        let admin = Raw::connect(&redis.url()).await;
        let url = redis.url().replace("redis://", "redis://optimus:secret@");
        let rules = rules(&namespace);
        let mut limited = Self { redis, namespace, admin, url, rules };
        limited.give_all().await;
        limited
    }

    async fn give_all(&mut self) {
        set_user(&mut self.admin, "optimus", &self.rules).await;
    }

    async fn take(&mut self, missing: &str) {
        set_user(&mut self.admin, "optimus", &without(missing, &self.rules)).await;
    }

    /// Takes a permission, and ends the connections: the next one may as well lead to another
    /// server, with other users.
    async fn take_and_disconnect(&mut self, missing: &str) {
        self.take(missing).await;
        self.admin.run("CLIENT KILL TYPE normal SKIPME yes").await;
    }

    /// Returns a bench whose programs log in as the user.
    async fn bench(&self) -> Bench {
        Bench::shared(&self.url, &self.namespace).await
    }

    fn key(&self, name: &str) -> String {
        format!("{{{}:default:0}}:{name}", self.namespace)
    }
}

async fn until_connected(client: &Client) {
    let is_back = async || client.inspector().counts("default").await.is_ok();
    eventually("the client has another connection", SOON, is_back).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_lives_work_under_the_documented_user() {
    let mut limited = Limited::start().await;
    let bench = limited.bench().await;
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
    let denied = limited.admin.run("ACL LOG").await;
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_names_each_permission_that_is_missing_and_changes_nothing() {
    let mut limited = Limited::start().await;
    let needed = |rule: &&String| rule.starts_with(['+', '~']) && !UNUSED.contains(&rule.as_str());
    for missing in limited.rules.clone().iter().filter(needed) {
        limited.take(missing).await;
        let worker = Worker::builder(&limited.url).namespace(&limited.namespace).quiet();
        let worker = worker.only_named_tasks().task_type::<Double>().build().unwrap();
        let problem = worker.run_until(std::future::pending::<()>()).await.unwrap_err();
        let named = problem.to_string();
        assert!(named.contains(missing) || named.contains("'ping'"), "{missing}: {named}");
        let keys = format!("KEYS *{}*", limited.namespace);
        let left = format!("without {missing}, the worker leaves no key");
        eventually(&left, SOON, async || limited.admin.run(&keys).await.is_empty()).await;
    }
    limited.give_all().await;
    let bench = limited.bench().await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let registered = async || {
        let queue = QueueName::new("default").unwrap();
        bench.client.inspector().workers(&queue).await.is_ok_and(|workers| !workers.is_empty())
    };
    eventually("the worker is registered", SOON, registered).await;
    worker.stop().await;
}

/// Redis refuses each command by itself, so a script would stop between two writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_user_may_not_finish_changes_nothing_and_works_with_the_permission() {
    let mut limited = Limited::start().await;
    let Bench { client, .. } = limited.bench().await;
    let counts = async || client.inspector().counts("default").await.unwrap();
    let call = || Double { number: 21 }.call();
    for missing in ["+rpush", "+zadd", "+zrem", "+hset", "+hdel"] {
        let cancelled = client.submit(call()).await.unwrap();
        cancelled.cancel().await.unwrap();
        let before = counts().await;
        limited.take_and_disconnect(missing).await;
        until_connected(&client).await;
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
        limited.give_all().await;
        client.requeue(cancelled.id()).await.unwrap();
        client.submit(call()).await.unwrap();
        assert_eq!(counts().await.ready, before.ready + 2, "with {missing} again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_of_the_first_call_of_a_client_names_the_permission_to_add() {
    let mut limited = Limited::start().await;
    for missing in ["+evalsha", "+hset", "+rpush", "+hget"] {
        limited.take(missing).await;
        let bench = limited.bench().await;
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

/// The user `default` may lack permissions as any other user may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_the_user_default_may_not_finish_changes_nothing() {
    let redis = RedisServer::builder().tcp().start();
    let mut admin = Raw::connect(&redis.url()).await;
    admin.run("ACL SETUSER boss on nopass ~* &* +@all").await;
    admin.run("AUTH boss -").await;
    for login in ["default:secret@", ":secret@"] {
        let namespace = namespace();
        let all = rules(&namespace);
        set_user(&mut admin, "default", &without("+rpush", &all)).await;
        let url = redis.url().replace("redis://", &format!("redis://{login}"));
        let Bench { client, .. } = Bench::shared(&url, &namespace).await;
        let problem = client.submit(Double { number: 1 }.call()).await.unwrap_err().to_string();
        assert!(problem.contains("add to its ACL: +rpush"), "{login}: {problem}");
        let left = admin.run(&format!("KEYS *{namespace}*")).await;
        assert!(left.is_empty(), "{login}: {left:?}");
        set_user(&mut admin, "default", &all).await;
        client.submit(Double { number: 1 }.call()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_goes_on_as_another_user_asks_what_that_user_may_do() {
    let redis = RedisServer::builder().tcp().start();
    let namespace = namespace();
    let mut admin = Raw::connect(&redis.url()).await;
    let all = rules(&namespace);
    set_user(&mut admin, "one", &all).await;
    set_user(&mut admin, "two", &without("+rpush", &all)).await;
    let is_second = Arc::new(AtomicBool::new(false));
    let seen = is_second.clone();
    let ask = move || {
        let user = if seen.load(Ordering::Relaxed) { "two" } else { "one" };
        let credentials = Credentials::new(user, "secret").valid_for(Duration::from_millis(200));
        async move { Ok::<_, BoxError>(credentials) }
    };
    let builder = Client::builder(&redis.url()).namespace(&namespace).credentials(ask);
    let client = builder.connect().await.unwrap();
    let submit = async || client.submit(Double { number: 1 }.call()).await;
    submit().await.unwrap();
    is_second.store(true, Ordering::Relaxed);
    let (mut accepted, mut problem) = (1, None);
    eventually("a submit is refused", SOON, async || {
        match submit().await {
            Ok(_) => accepted += 1,
            Err(refusal) => problem = Some(refusal.to_string()),
        }
        problem.is_some()
    })
    .await;
    let problem = problem.expect("it was refused");
    assert!(problem.contains("add to its ACL: +rpush"), "{problem}");
    set_user(&mut admin, "two", &all).await;
    submit().await.unwrap();
    let mut stored = async |command: &str, key: &str| {
        let key = format!("{{{namespace}:default:0}}:{key}");
        admin.run(&format!("{command} {key}")).await
    };
    let records = stored("HLEN", "tasks").await;
    assert_eq!(records, stored("LLEN", "ready").await, "each record is in the list");
    assert_eq!(records, [(accepted + 1).to_string().into_bytes()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_refused_keeps_no_report_of_the_same_write_back() {
    let mut limited = Limited::start().await;
    let Bench { client, .. } = limited.bench().await;
    let (broker, queue) = (client.broker(), QueueName::new("default").unwrap());
    let worker = WorkerId::from_stored("one");
    for number in 0..2 {
        client.submit(Double { number }.call()).await.unwrap();
    }
    broker.register(&queue, &worker, SOON, "{}").await.unwrap();
    let claimed = broker.claim(&queue, &worker, 1, 1).await.unwrap();
    let done = success_of::<Double>(&claimed, &worker);
    // Only a claim needs this permission.
    limited.take_and_disconnect("+lpop").await;
    until_connected(&client).await;
    let report = broker.complete_call(&queue, &worker, &[done]);
    let claim = broker.claim_call(&queue, &worker, 2, 1);
    let mut answers = broker.run_all(vec![report, claim]).await.into_iter();
    answers.next().unwrap().expect("the report needs nothing that is missing");
    let problem = answers.next().unwrap().unwrap_err().to_string();
    assert!(problem.contains("add to its ACL: +lpop"), "{problem}");
    let totals = client.inspector().totals("default").await.unwrap();
    assert_eq!(totals.successes, 1);
}

/// A heartbeat writes with both of these commands. Without the second one, it would stop between
/// its writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_its_user_may_not_finish_changes_nothing() {
    let mut limited = Limited::start().await;
    let Bench { client, .. } = limited.bench().await;
    let (broker, queue) = (client.broker(), QueueName::new("default").unwrap());
    let worker = WorkerId::from_stored("one");
    let handle = client.submit(Double { number: 1 }.call()).await.unwrap();
    broker.register(&queue, &worker, SOON, "{}").await.unwrap();
    broker.claim(&queue, &worker, 1, 1).await.unwrap();
    handle.cancel().await.unwrap();
    let stored = [
        format!("ZRANGE {} 0 -1 WITHSCORES", limited.key("workers")),
        format!("HGETALL {}", limited.key("meta")),
        format!("HGETALL {}", limited.key("cancel")),
    ];
    let renew = async || {
        let call = broker.renew_call(&queue, &worker, 2 * SOON);
        broker.run_all(vec![call]).await.remove(0)
    };
    for missing in ["+zadd", "+hset"] {
        let mut before = Vec::new();
        for command in &stored {
            before.push(limited.admin.run(command).await);
        }
        limited.take_and_disconnect(missing).await;
        until_connected(&client).await;
        let problem = renew().await.expect_err(missing).to_string();
        assert!(problem.contains(&format!("add to its ACL: {missing}")), "{missing}: {problem}");
        for (command, before) in stored.iter().zip(&before) {
            assert_eq!(&limited.admin.run(command).await, before, "without {missing}: {command}");
        }
        limited.give_all().await;
        renew().await.expect("with the permission");
        assert_ne!(limited.admin.run(&stored[0]).await, before[0], "the lease is renewed");
    }
}

/// Returns how often the server has refused this command.
async fn refusals(raw: &mut Raw, command: &str) -> u64 {
    let stats = String::from_utf8(raw.run("INFO commandstats").await.remove(0)).unwrap();
    let start = format!("cmdstat_{command}:");
    let figures = stats.lines().find_map(|line| line.strip_prefix(&start));
    let refused = figures.and_then(|figures| {
        figures.split(',').find_map(|figure| figure.strip_prefix("rejected_calls="))
    });
    refused.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn a_worker_whose_waits_are_refused_later_says_so_once_and_polls() {
    let log = Log::at(Level::WARN);
    let _default = set_default(log.subscriber());
    let mut limited = Limited::start().await;
    let bench = limited.bench().await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    limited.admin.until_waiting(2).await;
    limited.take_and_disconnect("+blpop").await;
    until_connected(&bench.client).await;
    let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    let said = || log.lines("optimus_worker::refused_wait");
    eventually("both listeners say it", SOON, async || said().len() >= 2).await;
    let before = refusals(&mut limited.admin, "blpop").await;
    let again = async || refusals(&mut limited.admin, "blpop").await >= before + 6;
    eventually("the waits are refused again", SOON, again).await;
    worker.stop().await;
    let said = said();
    let mut texts: Vec<&str> = said.iter().map(LogEvent::message).collect();
    texts.sort_unstable();
    let expected = [
        "can't wait for cancels with BLPOP; this worker receives them with its heartbeats",
        "can't wait for work with BLPOP; this worker polls instead",
    ];
    assert_eq!(texts, expected, "each listener says it once");
    assert!(said.iter().all(|line| line.get("error").contains("'blpop'")), "{said:?}");
}

/// Neither worker finds a task by a poll in time.
#[tokio::test]
async fn a_worker_whose_claims_are_refused_leaves_the_wakeups_to_others() {
    const NEVER: Duration = Duration::from_secs(3600);
    let log = Log::at(Level::ERROR);
    let _default = set_default(log.subscriber());
    let mut limited = Limited::start().await;
    let restricted = limited.bench().await;
    let refused = restricted.start(restricted.worker().task_type::<Double>().poll(NEVER));
    limited.admin.until_waiting(2).await;
    // Only a claim needs this permission.
    limited.take_and_disconnect("+lpop").await;
    let bench = Bench::shared(&limited.redis.url(), &limited.namespace).await;
    limited.admin.until_waiting(2).await;
    let first = bench.client.submit(Double { number: 0 }.call()).await.unwrap();
    let is_said = async || !log.lines("optimus_worker::rejections").is_empty();
    eventually("a claim is refused", SOON, is_said).await;
    let wakeups = format!("LLEN {}", limited.key("wake"));
    let is_left = async || limited.admin.run(&wakeups).await == [b"1"];
    eventually("the wakeup is left to others", SOON, is_left).await;
    let other = bench.start(bench.worker().task_type::<Double>().poll(NEVER));
    first.result_within(SOON).await.unwrap();
    for number in 1..=20 {
        let handle = bench.client.submit(Double { number }.call()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    other.stop().await;
    limited.give_all().await;
    let last = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    assert_eq!(last.result_within(SOON).await.unwrap(), 42, "its claims are accepted again");
    refused.stop().await;
}
