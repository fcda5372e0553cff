//! Submits to a full, a failing and an absent Redis. Biz ids, batches and results.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, Flaky, Gate, Raw, Wait};
use optimus_core::{
    BoxError, Call, CancelAnswer, Context, DataKey, Due, Error, QueueName, Task, TaskHandle,
    TaskId, TaskState,
};
use optimus_testkit::{RedisServer, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

/// How often each task ran.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<HashMap<TaskId, u32>>>);

impl Runs {
    fn of(&self, id: &TaskId) -> u32 {
        self.0.lock().unwrap().get(id).copied().unwrap_or(0)
    }
}

/// Counts its runs. Its cargo uses memory.
#[derive(Serialize, Deserialize, Default)]
struct Count {
    cargo: String,
}

impl Task for Count {
    const NAME: &'static str = "count";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Runs>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let runs: Runs = ctx.data().unwrap();
        *runs.0.lock().unwrap().entry(ctx.id().clone()).or_default() += 1;
        Ok(())
    }
}

/// A task that returns a number, or nothing.
#[derive(Serialize, Deserialize)]
struct Perhaps {
    number: Option<u32>,
}

impl Task for Perhaps {
    const NAME: &'static str = "perhaps";
    type Output = Option<u32>;

    async fn run(self, _: Context) -> Result<Option<u32>, BoxError> {
        Ok(self.number)
    }
}

fn double(number: i64) -> Call<Double> {
    Double { number }.call()
}

fn default_queue() -> QueueName {
    QueueName::new(QueueName::DEFAULT).unwrap()
}

/// Checks that every task ran once, and that no other task ran.
async fn ran_once(bench: &Bench, handles: &[TaskHandle<()>], runs: &Runs) {
    let inspector = bench.client.inspector();
    // This connection may be the one that was cut last.
    eventually("the queue is empty", SOON, async || {
        let counts = inspector.counts(&default_queue()).await;
        counts.is_ok_and(|n| n.ready + n.delayed + n.retry + n.working == 0)
    })
    .await;
    let odd: Vec<_> = handles.iter().filter(|handle| runs.of(handle.id()) != 1).collect();
    assert!(odd.is_empty(), "tasks that did not run exactly once: {odd:?}");
    assert_eq!(runs.0.lock().unwrap().len(), handles.len(), "a task without a handle ran");
}

/// Sends a command repeatedly until this value is dropped.
struct Repeated(tokio::task::JoinHandle<()>);

impl Repeated {
    fn with(mut raw: Raw, command: &'static str, pause: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                raw.run(command).await;
                tokio::time::sleep(pause).await;
            }
        }))
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Submits one by one, from eight tasks at once.
async fn submit_singly(bench: &Bench, count: usize) -> Vec<Result<TaskHandle<()>, Error>> {
    let submitters = (0..8).map(|_| {
        let client = bench.client.clone();
        tokio::spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..count / 8 {
                answers.push(client.submit(Count::default().call()).await);
            }
            answers
        })
    });
    let mut answers = Vec::new();
    for submitter in submitters.collect::<Vec<_>>() {
        answers.extend(submitter.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_refuses_submits_continues_draining_and_takes_them_again_after() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let limit = raw.info("used_memory").await + 4_000_000;
    raw.run(&format!("CONFIG SET maxmemory {limit}")).await;
    let call = || Count { cargo: "x".repeat(10_000) }.call();
    let mut handles = Vec::new();
    let refusal = loop {
        match bench.client.submit(call()).await {
            Ok(handle) => handles.push(handle),
            Err(problem) => break problem,
        }
    };
    assert!(refusal.is_full(), "{refusal}");
    let stored = bench.client.inspector().counts(&default_queue()).await.unwrap().ready;
    assert_eq!(stored, handles.len() as u64, "the refused task is not stored");
    let runs = Runs::default();
    let worker = bench.start(bench.worker().task_type::<Count>().data(runs.clone()));
    ran_once(&bench, &handles, &runs).await;
    bench.client.submit(call()).await.unwrap().result_within(SOON).await.unwrap();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_to_submits_lose_no_task_and_double_none() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let killing = "CLIENT KILL TYPE normal SKIPME yes";
    let mut handles = Vec::new();
    // On a busy machine, fewer connections are cut while so many tasks are submitted.
    for round in 1.. {
        let harassment = Repeated::with(bench.raw().await, killing, Duration::from_millis(3));
        let some: Result<Vec<_>, Error> = submit_singly(&bench, 2_000).await.into_iter().collect();
        drop(harassment);
        handles.extend(some.expect("each call ends within half a minute"));
        let connected = bench.raw().await.info("total_connections_received").await;
        if connected > 20 + 2 * round {
            break;
        }
        assert!(round < 10, "only {connected} connections: too few were cut");
    }
    let runs = Runs::default();
    let worker = bench.start(bench.worker().task_type::<Count>().data(runs.clone()));
    ran_once(&bench, &handles, &runs).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_flushed_from_redis_are_never_missed() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let runs = Runs::default();
    let harassment =
        Repeated::with(bench.raw().await, "SCRIPT FLUSH SYNC", Duration::from_micros(200));
    let worker = bench.start(bench.worker().task_type::<Count>().data(runs.clone()));
    let handles: Result<Vec<_>, Error> = submit_singly(&bench, 1_000).await.into_iter().collect();
    ran_once(&bench, &handles.unwrap(), &runs).await;
    drop(harassment);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_while_redis_is_down_waits_for_it() {
    let mut server = RedisServer::builder().appendonly_always().start();
    let bench = Bench::at(&server.url()).await;
    let before = bench.client.submit(double(1)).await.unwrap();
    server.kill();
    let client = bench.client.clone();
    let mut submit = tokio::spawn(async move { client.submit(double(2)).await });
    let early = tokio::time::timeout(Duration::from_millis(200), &mut submit).await;
    assert!(early.is_err(), "there was no server to answer");
    server.restart();
    let during = submit.await.unwrap().unwrap();
    let worker = bench.start(bench.worker().task_type::<Double>());
    assert_eq!(before.result_within(SOON).await.unwrap(), 2);
    assert_eq!(during.result_within(SOON).await.unwrap(), 4);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_gives_up_at_its_timeout_and_knows_that_nothing_was_sent() {
    let mut server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let timeout = Duration::from_millis(300);
    let client = bench.client_builder().submit_timeout(timeout).connect().await.unwrap();
    client.submit(double(1)).await.unwrap();
    server.kill();
    // By then, the client has noticed that its connection is gone.
    assert!(client.broker().within(Duration::ZERO).ping().await.is_err());
    let begun = Instant::now();
    let problem = client.submit(double(1)).await.unwrap_err();
    assert!(problem.is_unavailable(), "{problem}");
    assert!(begun.elapsed() < timeout + Duration::from_secs(1), "{:?}", begun.elapsed());
}

on_both! {
    async fn a_biz_id_admits_one_task_until_that_has_succeeded(bench: Bench) {
        let call = || Wait {}.call().biz_id("order 7: {ä}\n");
        let first = bench.client.submit(call()).await.unwrap();
        let second = bench.client.submit(call()).await.unwrap();
        assert!(!first.is_duplicate() && second.is_duplicate());
        assert_eq!(first.id(), second.id());
        let other_task = bench.client.submit(double(1).biz_id("order 7: {ä}\n")).await.unwrap();
        assert!(!other_task.is_duplicate());
        let gate = Gate::new();
        let builder = bench.worker().task_type::<Wait>().task_type::<Double>();
        let worker = bench.start(builder.data(gate.clone()));
        gate.began.wait_for(1).await;
        assert!(bench.client.submit(call()).await.unwrap().is_duplicate(), "the task runs");
        gate.open.hit();
        second.result_within(SOON).await.unwrap();
        assert!(!bench.client.submit(call()).await.unwrap().is_duplicate(), "free again");
        worker.stop().await;
    }

    async fn a_biz_id_is_kept_by_the_dead_and_freed_by_a_cancel(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let flaky = || Flaky { attempts: 9, panics: false }.call().max_retry(0).biz_id("b");
        let dead = bench.client.submit(flaky()).await.unwrap();
        assert!(dead.result_within(SOON).await.unwrap_err().is_dead());
        let second = bench.client.submit(flaky()).await.unwrap();
        assert!(second.is_duplicate() && second.id() == dead.id());
        worker.stop().await;
        let later = || double(1).due(Due::In(SOON)).biz_id("\0 \"c\":{}");
        let waiting = bench.client.submit(later()).await.unwrap();
        assert!(bench.client.submit(later()).await.unwrap().is_duplicate());
        assert_eq!(waiting.cancel().await.unwrap(), CancelAnswer::Cancelled);
        assert!(!bench.client.submit(later()).await.unwrap().is_duplicate());
        let problem = bench.client.requeue(waiting.id()).await.unwrap_err();
        assert!(problem.is_duplicate() && problem.task_ids() != [waiting.id().clone()]);
    }

    async fn a_biz_window_outlives_the_success_and_ends(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>());
        let call = |window: Duration| double(1).biz_id("b").biz_window(window);
        let window = Duration::from_millis(400);
        let first = bench.client.submit(call(window)).await.unwrap();
        first.result_within(SOON).await.unwrap();
        let second = bench.client.submit(call(window)).await.unwrap();
        assert!(second.is_duplicate() && second.id() == first.id());
        assert_eq!(second.result_within(SOON).await.unwrap(), 2);
        let admitted = async || !bench.client.submit(call(window)).await.unwrap().is_duplicate();
        eventually("the window ends", SOON, admitted).await;
        worker.stop().await;
    }

    async fn one_batch_admits_a_biz_id_once(bench: Bench) {
        let calls = (0..10).map(|n| double(n).biz_id(format!("b{}", n % 2)));
        let handles = bench.client.submit_all(calls).await.unwrap();
        for (at, handle) in handles.iter().enumerate() {
            assert_eq!(handle.is_duplicate(), at >= 2);
            assert_eq!(handle.id(), handles[at % 2].id());
        }
        assert_eq!(bench.client.inspector().counts(&default_queue()).await.unwrap().ready, 2);
    }

    async fn a_batch_over_many_queues_has_an_answer_for_each_task(bench: Bench) {
        let calls = (0..5_000_u32).map(|n| match n {
            2_500 => double(2_500).priority(101),
            3_000 => double(3_000).queue("not a queue"),
            n => double(n.into()).queue(format!("q{}", n % 3)),
        });
        let answers = bench.client.submit_all(calls).await.unwrap_err();
        assert!(answers.first.to_string().contains("priority"), "{}", answers.first);
        assert!(answers.to_string().contains("2 of 5000"), "{answers}");
        let worker = bench.start(bench.worker().task_type::<Double>().queues(["q0", "q1", "q2"]));
        for (n, answer) in (0..).zip(&answers.answers) {
            match answer {
                // A check of every tenth answer is enough to show that each answer belongs to its
                // task.
                Ok(handle) if n % 10 == 0 => {
                    assert_eq!(handle.result_within(SOON).await.unwrap(), n * 2);
                }
                Ok(handle) => assert!(!handle.is_duplicate()),
                Err(problem) => {
                    assert!(problem.is_invalid() && [2_500, 3_000].contains(&n), "{n}: {problem}");
                }
            }
        }
        worker.stop().await;
        assert!(bench.client.submit_all(Vec::<Call<Double>>::new()).await.unwrap().is_empty());
    }

    async fn calls_of_several_tasks_go_in_one_batch(bench: Bench) {
        let builder = bench.worker().task_type::<Double>().task_type::<Perhaps>();
        let worker = bench.start(builder);
        let calls = [double(4).erase(), Perhaps { number: None }.call().erase()];
        let handles = bench.client.submit_all(calls.map(Result::unwrap)).await.unwrap();
        assert_eq!(handles[0].result_within(SOON).await.unwrap(), 8);
        assert!(handles[1].result_within(SOON).await.unwrap().is_null());
        worker.stop().await;
    }

    async fn a_wait_for_a_result_ends_at_its_timeout_and_the_task_continues(bench: Bench) {
        let gate = Gate::new();
        let worker = bench.start(bench.worker().task_type::<Wait>().data(gate.clone()));
        let handle = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        let problem = handle.result_within(Duration::from_millis(50)).await.unwrap_err();
        assert!(problem.is_timeout(), "{problem}");
        assert_eq!(problem.task_ids(), [handle.id().clone()]);
        gate.open.hit();
        handle.result_within(SOON).await.unwrap();
        worker.stop().await;
    }

    async fn all_who_wait_for_a_task_receive_its_end(bench: Bench) {
        let gate = Gate::new();
        let worker = bench.start(bench.worker().task_type::<Wait>().data(gate.clone()));
        let handle = bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(1).await;
        let elsewhere = bench.client_builder().connect().await.unwrap();
        let far = elsewhere.handle::<()>(handle.id().clone());
        let handles = [handle.clone(), handle.clone(), handle, far.clone(), far];
        let waiters = handles.map(|h| tokio::spawn(async move { h.result_within(SOON).await }));
        let opened = Instant::now();
        gate.open.hit();
        for waiter in waiters {
            waiter.await.unwrap().unwrap();
        }
        assert!(opened.elapsed() < Duration::from_secs(2), "only after {:?}", opened.elapsed());
        worker.stop().await;
    }

    async fn a_cancelled_task_is_no_result(bench: Bench) {
        let handle = bench.client.submit(double(1)).await.unwrap();
        let waiter = handle.clone();
        let waiter = tokio::spawn(async move { waiter.result_within(SOON).await });
        assert_eq!(handle.cancel().await.unwrap(), CancelAnswer::Cancelled);
        assert!(waiter.await.unwrap().unwrap_err().is_cancelled());
        assert!(handle.result().await.unwrap_err().is_cancelled());
        assert_eq!(handle.status().await.unwrap(), TaskState::Cancelled);
    }

    async fn a_result_that_is_gone_is_not_taken_for_an_empty_one(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Perhaps>());
        let call = |number| Perhaps { number }.call();
        let kept = bench.client.submit(call(Some(7))).await.unwrap();
        assert_eq!(kept.result_within(SOON).await.unwrap(), Some(7));
        let empty = bench.client.submit(call(None)).await.unwrap();
        assert_eq!(empty.result_within(SOON).await.unwrap(), None);
        let not_kept = bench.client.submit(call(Some(7)).result_ttl(Duration::ZERO)).await.unwrap();
        let problem = not_kept.result_within(SOON).await;
        assert!(problem.as_ref().is_err_and(Error::is_forgotten), "{problem:?}");
        worker.stop().await;
    }
}
