//! Measures how long tasks of other queues wait while one handler blocks one of the runtime's two
//! threads.
//!
//! Such a handler also takes a core from Redis and the submitter, and other programs may keep the
//! machine busy. So the waits are compared with those of plain tokio tasks on the same runtime. A
//! plain task calls Redis once, and the same thread spawns these tasks in turn with the submits. A
//! start may take 10 ms more than a plain task.

use std::{
    fmt, hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use optimus_core::{BoxError, Client, Context, DataKey, Task};
use optimus_testkit::{Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, task::JoinHandle};

use crate::common::Bench;

const BOUND: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(30);

/// Spins, which handlers should not do but sometimes do.
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

/// Records when it begins.
#[derive(Serialize, Deserialize)]
struct Quick {
    number: usize,
}

/// The time at which each task began.
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

/// The times from submit to start: the median, the 99th percentile, and the longest.
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

/// The waits of tasks, and of plain tokio tasks on the same runtime.
struct Both {
    tasks: Waits,
    plain: Waits,
}

impl fmt::Display for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tasks: {}; plain ones: {}", self.tasks, self.plain)
    }
}

/// Spawns a plain task from outside its runtime. The task calls Redis once. Returns how long it
/// takes.
fn spawn_plain(runtime: &Handle, client: &Client) -> JoinHandle<Duration> {
    let (since, client) = (Instant::now(), client.clone());
    runtime.spawn(async move {
        client.inspector().queues().await.unwrap();
        since.elapsed()
    })
}

/// Submits a task every 20 ms from a separate thread, to three queues in turn. Spawns a plain task
/// between two submits.
async fn waits(bench: &Bench, begun: &Begun, time: Duration) -> Both {
    let count = usize::try_from(time.as_millis() / EVERY.as_millis()).unwrap();
    *begun.0.lock().unwrap() = vec![None; count];
    let (url, namespace) = (bench.url(), bench.namespace().to_owned());
    let (near, handlers) = (bench.client.clone(), Handle::current());
    let (sender, received) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let waited = runtime.unwrap().block_on(async {
            let client = Client::builder(&url).namespace(&namespace).connect().await.unwrap();
            let (mut submitted, mut plain) = (Vec::new(), Vec::new());
            let mut next = tokio::time::interval(EVERY / 2);
            for number in 0..count {
                next.tick().await;
                submitted.push(Instant::now());
                let call = Quick { number }.call().queue(format!("quick{}", number % 3));
                client.submit(call).await.unwrap();
                next.tick().await;
                plain.push(spawn_plain(&handlers, &near));
            }
            (submitted, plain)
        });
        drop(sender.send(waited));
    });
    let (submitted, plain) = received.await.unwrap();
    let all_began = async || begun.0.lock().unwrap().iter().all(Option::is_some);
    eventually("all tasks have begun", SOON, all_began).await;
    let plain = join_all(plain).await.into_iter().map(Result::unwrap).collect();
    let begun = begun.0.lock().unwrap();
    let wait = |(begun, submitted): (&Option<Instant>, Instant)| begun.unwrap() - submitted;
    let tasks = begun.iter().zip(submitted).map(wait).collect();
    Both { tasks: Waits::of(tasks), plain: Waits::of(plain) }
}

/// Returns how long other tasks waited while a handler spun.
async fn with_a_spinning_handler(time: Duration) -> Both {
    let bench = Bench::on_redis().await;
    let (log, began) = (Begun::default(), Signal::new());
    let released = Arc::new(AtomicBool::new(false));
    let builder = bench.worker().queues(["spin", "quick0", "quick1", "quick2"]).concurrency(64);
    let builder = builder.task_type::<Spin>().task_type::<Quick>().data(log.clone());
    let spinner = Spinner { began: began.clone(), released: released.clone() };
    let worker = bench.start(builder.data(spinner));
    let quiet = waits(&bench, &log, time).await;
    let spin = bench.client.submit(Spin {}.call().queue("spin")).await.unwrap();
    began.wait_for(1).await;
    let spinning = waits(&bench, &log, time).await;
    released.store(true, Ordering::Relaxed);
    spin.result_within(SOON).await.unwrap();
    worker.stop().await;
    println!("for {time:?} each: without a spinning handler: {quiet}");
    println!("with a spinning handler: {spinning}");
    spinning
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_other_queues_start_at_once_while_a_handler_spins() {
    let time = Duration::from_millis(1_500);
    let both = with_a_spinning_handler(time).await;
    assert!(both.tasks.median <= BOUND + both.plain.median, "{both}");
    assert!(both.tasks.longest < time / 2 + both.plain.longest, "{both}");
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn tasks_of_other_queues_start_within_10_ms_while_a_handler_spins_for_15_s() {
        let both = with_a_spinning_handler(Duration::from_secs(15)).await;
        assert!(both.tasks.most <= BOUND + both.plain.most, "{both}");
    }
}
