//! How long tasks of other queues wait while one handler keeps a thread of a runtime of two.
//!
//! Such a handler also takes a core of the machine, from Redis and the submitter, too. So the waits
//! are compared with those while a thread spins that is none of the runtime's: beyond 10 ms, the
//! handler may cost others no more than that thread does.

use std::{
    fmt, hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Client, Context, DataKey, Task};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};

use crate::common::Bench;

const BOUND: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(30);

/// Spins, as handlers should not and do.
#[derive(Serialize, Deserialize)]
struct Spin {}

#[derive(Clone)]
struct Spinner {
    began: Signal,
    released: Arc<AtomicBool>,
}

impl Task for Spin {
    const NAME: &'static str = "spin";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Spinner>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let spinner: Spinner = ctx.data().unwrap();
        spinner.began.hit();
        while !spinner.released.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
        Ok(())
    }
}

/// Tells when it begins.
#[derive(Serialize, Deserialize)]
struct Quick {
    number: usize,
}

/// When each began.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<Vec<Option<Instant>>>>);

impl Task for Quick {
    const NAME: &'static str = "quick";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Begun>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let begun: Begun = ctx.data().unwrap();
        begun.0.lock().unwrap()[self.number] = Some(Instant::now());
        Ok(())
    }
}

/// From the submit to the begin: the median, what 99 in 100 do not exceed, and the longest.
#[derive(Clone, Copy)]
struct Waits {
    median: Duration,
    most: Duration,
    longest: Duration,
}

impl Waits {
    fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let at = |percent: usize| waits[(waits.len() - 1) * percent / 100];
        Self { median: at(50), most: at(99), longest: at(100) }
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, most, longest } = self;
        write!(f, "median {median:.1?}, 99 in 100 {most:.1?}, longest {longest:.1?}")
    }
}

/// Submits a task every 20 ms for so long, from a thread of its own, to three queues in turn.
async fn waits(bench: &Bench, begun: &Begun, time: Duration) -> Waits {
    let count = usize::try_from(time.as_millis() / EVERY.as_millis()).unwrap();
    *begun.0.lock().unwrap() = vec![None; count];
    let (url, namespace) = (bench.url(), bench.namespace().to_owned());
    let (tell, told) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let submitted = runtime.unwrap().block_on(async {
            let client = Client::builder(&url).namespace(&namespace).connect().await.unwrap();
            let (mut submitted, mut next) = (Vec::new(), tokio::time::interval(EVERY));
            for number in 0..count {
                next.tick().await;
                submitted.push(Instant::now());
                let call = Quick { number }.call().queue(format!("quick{}", number % 3));
                client.submit(call).await.unwrap();
            }
            submitted
        });
        tell.send(submitted).unwrap();
    });
    let submitted = told.await.unwrap();
    let all_began = async || begun.0.lock().unwrap().iter().all(Option::is_some);
    eventually("all have begun", SOON, all_began).await;
    let begun = begun.0.lock().unwrap();
    let wait = |(begun, submitted): (&Option<Instant>, Instant)| begun.unwrap() - submitted;
    Waits::of(begun.iter().zip(submitted).map(wait).collect())
}

/// A thread beside the runtime that spins until it is dropped.
struct Beside(Arc<AtomicBool>);

impl Beside {
    fn start() -> Self {
        let released = Arc::new(AtomicBool::new(false));
        let theirs = released.clone();
        thread::spawn(move || {
            while !theirs.load(Ordering::Relaxed) {
                hint::spin_loop();
            }
        });
        Self(released)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What others waited while a thread spun beside the runtime, and while a handler did.
async fn beside_a_thread_and_a_handler(time: Duration) -> (Waits, Waits) {
    let bench = Bench::on_redis().await;
    let (log, began) = (Begun::default(), Signal::new());
    let released = Arc::new(AtomicBool::new(false));
    let builder = bench.worker().queues(["spin", "quick0", "quick1", "quick2"]).concurrency(64);
    let builder = builder.task_type::<Spin>().task_type::<Quick>().data(log.clone());
    let spinner = Spinner { began: began.clone(), released: released.clone() };
    let worker = bench.start(builder.data(spinner));
    let quiet = waits(&bench, &log, time).await;
    let beside = Beside::start();
    let thread = waits(&bench, &log, time).await;
    drop(beside);
    let spin = bench.client.submit(Spin {}.call().queue("spin")).await.unwrap();
    began.wait_for(1).await;
    let handler = waits(&bench, &log, time).await;
    released.store(true, Ordering::Relaxed);
    spin.result_within(SOON).await.unwrap();
    worker.stop().await;
    println!("for {time:?} each: nothing spins: {quiet}");
    println!("a thread spins beside the runtime: {thread}");
    println!("a handler spins: {handler}");
    (thread, handler)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_handler_that_spins_tasks_of_other_queues_start_at_once() {
    let time = Duration::from_millis(1_500);
    let (thread, handler) = beside_a_thread_and_a_handler(time).await;
    assert!(handler.median <= BOUND.max(thread.median * 4), "{thread}; {handler}");
    assert!(handler.longest < time / 2 + thread.longest, "{thread}; {handler}");
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn beside_a_handler_that_spins_for_15_s_tasks_of_other_queues_start_within_10_ms() {
        let (thread, handler) = beside_a_thread_and_a_handler(Duration::from_secs(15)).await;
        assert!(handler.most <= BOUND.max(thread.most * 2), "{thread}; {handler}");
    }
}
