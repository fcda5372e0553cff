//! Worker processes that must end on time although handlers or Redis delay their end.

use std::{
    env,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, died_of, view};
use optimus_core::{BoxError, Context, QueueName, Reason, Task, TaskHandle, TaskState};
use optimus_testkit::{EachEvent, LogEvent, Proc, RedisServer, Signal, eventually};
use optimus_worker::Worker;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, subscriber::set_default};

const SOON: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
/// How long a supervisor waits, according to the documentation.
const WITHIN: Duration = Duration::from_secs(11);
const LEASE: Duration = Duration::from_secs(2);
/// The number of slots. It is larger than the number of threads, so that some claimed tasks can't
/// begin.
const SLOTS: usize = 8;

/// The signal that each quick task hits.
static QUICK: LazyLock<Signal> = LazyLock::new(Signal::new);

/// Keeps a thread of the runtime for longer than any test, once this many quick tasks have run.
#[derive(Serialize, Deserialize)]
struct ParkForever {
    after: u64,
}

impl Task for ParkForever {
    const NAME: &'static str = "park_forever";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        QUICK.wait_for(self.after).await;
        println!("parking");
        loop {
            thread::park();
        }
    }
}

/// Keeps a separate thread for longer than any test.
#[derive(Serialize, Deserialize)]
struct Hang {}

impl Task for Hang {
    const NAME: &'static str = "hang";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let work = || {
            println!("hanging");
            loop {
                thread::park();
            }
        };
        ctx.run_blocking(work).await
    }
}

/// A task that returns at once.
#[derive(Serialize, Deserialize)]
struct Quick {}

impl Task for Quick {
    const NAME: &'static str = "quick";
    type Output = i64;

    async fn run(self, _: Context) -> Result<i64, BoxError> {
        QUICK.hit();
        Ok(1)
    }
}

/// The setup of a worker process.
struct Child<'a> {
    bench: &'a Bench,
    /// The number of threads of its runtime. One thread is a `current_thread` runtime.
    threads: usize,
    queues: usize,
    grace: Duration,
}

impl<'a> Child<'a> {
    fn of(bench: &'a Bench) -> Self {
        Self { bench, threads: 2, queues: 1, grace: GRACE }
    }

    /// Starts this test binary as a worker process, and waits until it serves.
    async fn start(&self) -> Proc {
        let child = Proc::program(env::current_exe().unwrap())
            .arg("ending::a_worker_process_for_the_other_tests")
            .arg("--exact")
            .arg("--ignored")
            .arg("--nocapture")
            .env("CHILD_URL", self.bench.url())
            .env("CHILD_NAMESPACE", self.bench.namespace())
            .env("CHILD_THREADS", self.threads.to_string())
            .env("CHILD_QUEUES", self.queues.to_string())
            .env("CHILD_GRACE_S", self.grace.as_secs().to_string())
            .start();
        child.wait_for_line("optimus worker", SOON).await;
        child
    }
}

/// Waits until the process has printed this many lines with this text.
async fn has_lines(child: &Proc, text: &str, count: usize) {
    eventually(text, SOON, async || {
        child.lines().iter().filter(|line| line.contains(text)).count() == count
    })
    .await;
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(threads).enable_all().build().unwrap()
}

#[test]
#[ignore = "other tests start this process with its settings"]
fn a_worker_process_for_the_other_tests() {
    let setting = |name: &str| env::var(format!("CHILD_{name}")).unwrap();
    let [threads, queues, grace_s] =
        ["THREADS", "QUEUES", "GRACE_S"].map(|name| setting(name).parse::<usize>().unwrap());
    let names = (1..queues).map(|number| format!("queue{number}"));
    let builder = Worker::builder(&setting("URL"))
        .namespace(setting("NAMESPACE"))
        .queues(names.chain(["default".to_owned()]))
        .concurrency(SLOTS)
        .lease(LEASE)
        .shutdown_grace(Duration::from_secs(grace_s as u64))
        .only_named_tasks()
        .task_type::<Double>()
        .task_type::<Hang>()
        .task_type::<ParkForever>()
        .task_type::<Quick>();
    let print = |event: LogEvent| println!("{}", event.message());
    let _default = set_default(EachEvent::new(print).of("optimus_").at(Level::ERROR));
    runtime(threads).block_on(builder.run()).unwrap();
}

/// Asks the process to end. Returns its exit code, which must arrive within the bound.
async fn ends(child: &mut Proc) -> i32 {
    let asked = Instant::now();
    child.sigterm();
    let status = child.wait(WITHIN).await;
    eprintln!("ended {:?} after the request", asked.elapsed());
    status.code().unwrap_or_else(|| panic!("{status}"))
}

async fn has_left(bench: &Bench, queue: &str) -> bool {
    let queue = QueueName::new(queue).unwrap();
    bench.client.inspector().workers(&queue).await.unwrap().is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_worker_has_nothing_to_do_ends_with_0() {
    let bench = Bench::on_redis().await;
    for threads in [1, 2] {
        let mut child = Child { threads, ..Child::of(&bench) }.start().await;
        let asked = Instant::now();
        assert_eq!(ends(&mut child).await, 0);
        assert!(asked.elapsed() < GRACE, "{:?}", asked.elapsed());
        assert!(has_left(&bench, "default").await);
    }
}

/// Returns how many of these tasks are in this state.
async fn count<T: DeserializeOwned + 'static>(tasks: &[TaskHandle<T>], state: TaskState) -> usize {
    let mut found = 0;
    for task in tasks {
        found += usize::from(task.status().await.unwrap() == state);
    }
    found
}

/// Ends a process whose handlers keep every thread. One task has ended then, but can't be reported.
async fn ends_while_all_threads_are_kept(threads: usize) {
    let bench = Bench::on_redis().await;
    let parked = (0..threads).map(|_| ParkForever { after: 1 }.call());
    let parked = bench.client.submit_all(parked).await.unwrap();
    let quick = bench.client.submit(Quick {}.call()).await.unwrap();
    let mut child = Child { threads, ..Child::of(&bench) }.start().await;
    has_lines(&child, "parking", threads).await;
    assert_eq!(ends(&mut child).await, Worker::EXIT_BLOCKED);
    has_lines(&child, "tasks that are not reported run again", 1).await;
    assert_eq!(quick.status().await.unwrap(), TaskState::Success, "the handler had ended");
    assert_eq!(count(&parked, TaskState::Working).await, threads, "the handlers had begun");
    let heir = Child { threads: SLOTS, ..Child::of(&bench) }.start().await;
    bench.client.submit(Quick {}.call()).await.unwrap();
    has_lines(&heir, "parking", threads).await;
    for parked in &parked {
        let parked = view(&bench, parked.id()).await;
        assert_eq!((parked.failures, parked.losses), (0, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_only_thread_is_blocked_ends_and_its_tasks_run_elsewhere() {
    ends_while_all_threads_are_kept(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_threads_are_all_blocked_ends_and_its_tasks_run_elsewhere() {
    ends_while_all_threads_are_kept(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_process_whose_tasks_are_reported_does_not_log_that_they_run_again() {
    let bench = Bench::on_redis().await;
    let parked = ParkForever { after: 0 }.call().timeout(GRACE).max_retry(0);
    let parked = bench.client.submit(parked).await.unwrap();
    let mut child = Child::of(&bench).start().await;
    died_of(&parked, Reason::TimedOut).await;
    assert_eq!(ends(&mut child).await, Worker::EXIT_BLOCKED);
    has_lines(&child, "all tasks of this worker are reported", 1).await;
    has_lines(&child, "run again", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_have_not_begun_are_given_back_as_soon_as_the_worker_must_end() {
    let bench = Bench::on_redis().await;
    let parked = (0..SLOTS).map(|_| ParkForever { after: 0 }.call());
    let parked = bench.client.submit_all(parked).await.unwrap();
    let grace = Duration::from_secs(600);
    let mut child = Child { threads: 1, grace, ..Child::of(&bench) }.start().await;
    has_lines(&child, "parking", 1).await;
    assert_eq!(count(&parked, TaskState::Working).await, SLOTS);
    child.sigterm();
    eventually("all tasks except one are ready", SOON, async || {
        count(&parked, TaskState::Ready).await == SLOTS - 1
    })
    .await;
    assert_eq!(count(&parked, TaskState::Working).await, 1);
    child.signal("INT");
    assert_eq!(
        child.wait(WITHIN).await.code(),
        Some(Worker::EXIT_BLOCKED),
        "ended by a second signal"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_blocking_handlers_hang_ends_with_0_and_leaves_them_to_their_lease() {
    let bench = Bench::on_redis().await;
    let hangs = bench.client.submit_all((0..3).map(|_| Hang {}.call())).await.unwrap();
    let mut child = Child::of(&bench).start().await;
    has_lines(&child, "hanging", hangs.len()).await;
    assert_eq!(ends(&mut child).await, 0);
    for hang in &hangs {
        assert_eq!(hang.status().await.unwrap(), TaskState::Working);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_two_hundred_queues_ends_whatever_keeps_its_threads() {
    let bench = Bench::on_redis().await;
    let mut child = Child { threads: 1, queues: 200, ..Child::of(&bench) }.start().await;
    bench.client.submit(ParkForever { after: 0 }.call().queue("queue7")).await.unwrap();
    child.wait_for_line("parking", SOON).await;
    assert_eq!(ends(&mut child).await, Worker::EXIT_BLOCKED);
    for number in (1..200).filter(|number| *number != 7) {
        assert!(has_left(&bench, &format!("queue{number}")).await, "queue{number}");
    }
}

/// Ends a process without Redis. The function breaks Redis before the process is asked to end.
async fn ends_without_redis(threads: usize, go_away: impl Fn(&mut RedisServer)) {
    for (is_blocked, code) in [(true, Worker::EXIT_BLOCKED), (false, 0)] {
        let mut redis = RedisServer::start();
        let bench = Bench::at(&redis.url()).await;
        let mut child = Child { threads, queues: 200, ..Child::of(&bench) }.start().await;
        if is_blocked {
            bench
                .client
                .submit_all((0..SLOTS).map(|_| ParkForever { after: 0 }.call()))
                .await
                .unwrap();
            child.wait_for_line("parking", SOON).await;
        }
        go_away(&mut redis);
        assert_eq!(ends(&mut child).await, code);
        redis.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_redis_is_dead_ends() {
    ends_without_redis(1, RedisServer::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_redis_is_frozen_ends() {
    ends_without_redis(2, |redis| redis.pause()).await;
}
