//! Handlers that block one thread or all threads of their runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, one_thread::OneThreadWorker};
use optimus_core::{
    Backoff, BoxError, Client, Context, Data, DataKey, QueueName, Reason, Task, TaskOptions,
    TaskState,
};
use optimus_testkit::{FaultProxy, Signal, eventually};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

const LEASE: Duration = Duration::from_secs(1);

/// Spins on a runtime thread, which handlers should not do but sometimes do.
#[derive(Serialize, Deserialize)]
struct Spin {
    ms: u64,
}

#[derive(Clone)]
struct Began(Signal);

impl Task for Spin {
    const NAME: &'static str = "spin";
    type Output = u32;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Began>()]
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        ctx.data::<Began>().unwrap().0.hit();
        let until = Instant::now() + Duration::from_millis(self.ms);
        while Instant::now() < until {
            thread::yield_now();
        }
        Ok(ctx.attempt())
    }
}

/// Spins. Its back-off must not be called on another thread.
#[derive(Serialize, Deserialize)]
struct SpinAndPanic {
    ms: u64,
}

impl Task for SpinAndPanic {
    const NAME: &'static str = "spin_and_panic";
    type Output = u32;

    fn options() -> TaskOptions {
        TaskOptions::new().backoff(Backoff::Custom(|_, error| panic!("called with {error}")))
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        Spin { ms: self.ms }.run(ctx).await
    }
}

/// Submits a task, then spins on a runtime thread until the test releases it.
#[derive(Serialize, Deserialize)]
struct SubmitAndSpin {}

#[derive(Clone)]
struct SpinUntil {
    client: Client,
    began: Signal,
    released: Arc<AtomicBool>,
}

/// The longest time that a failing test may take.
const WAIT_MAX: Duration = Duration::from_secs(25);

impl Task for SubmitAndSpin {
    const NAME: &'static str = "submit_and_spin";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<SpinUntil>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let until_released: SpinUntil = ctx.data().unwrap();
        until_released.client.submit(Double { number: 0 }.call().queue("other")).await?;
        until_released.began.hit();
        let until = Instant::now() + WAIT_MAX;
        while !until_released.released.load(Ordering::Relaxed) && Instant::now() < until {
            thread::yield_now();
        }
        Ok(())
    }
}

fn one_thread(bench: &Bench, began: &Signal) -> OneThreadWorker {
    let builder = bench.worker().lease(LEASE).data(Began(began.clone()));
    let builder = builder.task_type::<Spin>().task_type::<SpinAndPanic>();
    OneThreadWorker::start(builder.shutdown_grace(Duration::ZERO))
}

on_both! {
    async fn while_one_handler_keeps_a_thread_tasks_are_submitted_and_claimed_on_the_other(
        bench: Bench
    ) {
        let (began, released) = (Signal::new(), Arc::new(AtomicBool::new(false)));
        let client = bench.client.clone();
        let until_released = SpinUntil { client, began: began.clone(), released: released.clone() };
        let builder = bench.worker().queues(["default", "other"]).data(until_released);
        let worker = bench.start(builder.task_type::<SubmitAndSpin>().task_type::<Double>());
        // The blocked thread may run either task next, at random.
        for round in 1..=8 {
            released.store(false, Ordering::Relaxed);
            let spinning = bench.client.submit(SubmitAndSpin {}.call()).await.unwrap();
            began.wait_for(round).await;
            for number in 0..4 {
                let double = Double { number }.call().queue("other");
                let submitted = bench.client.submit(double);
                let submitted = tokio::time::timeout(WAIT_MAX / 2, submitted).await;
                let handle = submitted.expect("the submit is answered").unwrap();
                let answer = handle.result_within(WAIT_MAX / 2).await;
                assert_eq!(answer.expect("the task runs while the thread is blocked"), number * 2);
            }
            assert_eq!(spinning.status().await.unwrap(), TaskState::Working);
            released.store(true, Ordering::Relaxed);
            spinning.result_within(WAIT_MAX).await.unwrap();
        }
        worker.stop().await;
    }

    async fn a_handler_that_blocks_its_runtime_for_many_leases_keeps_its_task(bench: Bench) {
        let began = Signal::new();
        let one_thread = one_thread(&bench, &began);
        let spin = Spin { ms: 3_000 }.call();
        let handle = bench.client.submit(spin).await.unwrap();
        began.wait_for(1).await;
        // A second worker would take the tasks that the first one loses.
        let rival = bench.worker().lease(LEASE).task_type::<Spin>().data(Began(began.clone()));
        let rival = bench.start(rival);
        assert_eq!(handle.result_within(Duration::from_secs(20)).await.unwrap(), 1);
        assert_eq!(began.hits(), 1);
        drop(one_thread);
        rival.stop().await;
    }

    async fn past_its_timeout_even_a_blocking_handler_is_in_retry_within_a_second(bench: Bench) {
        let began = Signal::new();
        let timeout = Duration::from_millis(300);
        let one_thread = one_thread(&bench, &began);
        let spin = Spin { ms: 4_000 }.call().timeout(timeout);
        let handle = bench.client.submit(spin).await.unwrap();
        began.wait_for(1).await;
        let started = Instant::now();
        eventually("the task is in retry", Duration::from_secs(3), async || {
            handle.status().await.unwrap() == TaskState::Retry
        })
        .await;
        assert!(started.elapsed() < timeout + Duration::from_secs(1), "{:?}", started.elapsed());
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!(task.errors[0].reason, Reason::TimedOut);
        assert_eq!((task.failures, task.losses), (1, 0));
        drop(one_thread);
        let counts = bench.client.inspector().counts(&QueueName::new("default").unwrap()).await;
        assert_eq!(counts.unwrap().working, 0);
    }

    async fn tasks_that_a_blocked_runtime_did_not_begin_in_time_go_to_another_worker(bench: Bench) {
        let began = Signal::new();
        let queue = QueueName::new("default").unwrap();
        let rival = bench.worker().lease(LEASE).task_type::<Spin>().data(Began(began.clone()));
        let one_thread = one_thread(&bench, &began);
        // The tasks are claimed together, and one of them blocks the only thread.
        bench.client.pause(&queue).await.unwrap();
        let short = |ms| Spin { ms }.call().timeout(Duration::from_millis(500)).max_retry(0);
        bench.client.submit(Spin { ms: 5_000 }.call()).await.unwrap();
        let handles = bench.client.submit_all((0..3).map(|_| short(0))).await.unwrap();
        bench.client.resume(&queue).await.unwrap();
        began.wait_for(1).await;
        let rival = bench.start(rival);
        for handle in handles {
            assert_eq!(handle.result_within(Duration::from_secs(20)).await.unwrap(), 1);
        }
        drop(one_thread);
        rival.stop().await;
    }

    async fn the_deadlines_of_blocking_handlers_are_kept_whatever_their_back_offs_do(bench: Bench) {
        let began = Signal::new();
        let one_thread = one_thread(&bench, &began);
        for _ in 0..2 {
            let spin = SpinAndPanic { ms: 2_000 }.call().timeout(Duration::from_millis(300));
            let handle = bench.client.submit(spin).await.unwrap();
            eventually("the task is in retry", Duration::from_secs(20), async || {
                handle.status().await.unwrap() == TaskState::Retry
            })
            .await;
            let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
            assert_eq!(task.errors[0].reason, Reason::TimedOut);
        }
        drop(one_thread);
    }
}

/// The answer comes after 400 ms. If nobody listens, the worker says every 4 s what it runs, which
/// wakes a thread.
const UNHEARD_MAX: Duration = Duration::from_millis(1_200);
/// In some rounds, the thread that is kept is not the one that listens, or the machine is busy.
const ROUNDS: u64 = 6;
const UNHEARD_ROUNDS_MAX: u64 = 2;

/// Waits for a timer repeatedly, then spins until another task has begun.
#[derive(Serialize, Deserialize)]
struct Doze {}

#[derive(Clone, Default)]
struct Alarm {
    dozes: Signal,
    spins: Arc<AtomicBool>,
    other_began: Arc<AtomicBool>,
}

impl Task for Doze {
    const NAME: &'static str = "doze";
    type Output = bool;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Alarm>()]
    }

    async fn run(self, ctx: Context) -> Result<bool, BoxError> {
        let alarm: Alarm = ctx.data().unwrap();
        alarm.dozes.hit();
        while !alarm.spins.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let until = Instant::now() + UNHEARD_MAX;
        while !alarm.other_began.load(Ordering::Relaxed) && Instant::now() < until {
            thread::yield_now();
        }
        alarm.spins.store(false, Ordering::Relaxed);
        Ok(alarm.other_began.load(Ordering::Relaxed))
    }
}

#[derive(Serialize, Deserialize)]
struct Other {}

impl Task for Other {
    const NAME: &'static str = "other";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Alarm>().unwrap().other_began.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_claim_arrives_although_the_thread_that_listened_is_kept() {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let far = Bench::shared(&proxy.url(), near.namespace()).await;
    let alarm = Alarm::default();
    let builder = far.worker().lease(WAIT_MAX).poll(WAIT_MAX).data(alarm.clone());
    let worker = builder.task_type::<Doze>().task_type::<Other>().build().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let stopped = async { drop(stopped.await) };
        runtime.block_on(worker.run_until(stopped)).unwrap();
    });
    let mut unheard = 0;
    for round in 1..=ROUNDS {
        let doze = near.client.submit(Doze {}.call()).await.unwrap();
        alarm.dozes.wait_for(round).await;
        proxy.delay(Duration::from_millis(400));
        let other = near.client.submit(Other {}.call()).await.unwrap();
        eventually(
            "the other task is claimed, and the worker has no answer yet",
            WAIT_MAX,
            async || other.status().await.unwrap() == TaskState::Working,
        )
        .await;
        alarm.spins.store(true, Ordering::Relaxed);
        unheard += u64::from(!doze.result_within(WAIT_MAX).await.unwrap());
        other.result_within(WAIT_MAX).await.unwrap();
        alarm.other_began.store(false, Ordering::Relaxed);
        proxy.pass();
    }
    assert!(
        unheard <= UNHEARD_ROUNDS_MAX,
        "in {unheard} of {ROUNDS} rounds, the other task did not begin while the thread was blocked"
    );
    drop(stop);
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap().unwrap();
}

#[test]
fn data_that_is_missing_is_named_when_the_worker_is_built() {
    let builder = optimus_worker::Worker::builder("memory://x").only_named_tasks();
    let problem = builder.task_type::<Spin>().build().err().unwrap();
    assert!(problem.to_string().contains("Began"), "{problem}");
    assert!(!Data::new().holds(DataKey::of::<Began>()));
}
