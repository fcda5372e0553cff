//! A fault at each round trip, and networks that are slow, broken or silent.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Bench, Gate, Running, Wait};
use optimus_core::{
    Backoff, BoxError, Context, DataKey, QueueName, Task, TaskHandle, TaskId, TaskOptions,
    TaskState,
};
use optimus_testkit::{FaultProxy, Way, eventually};
use serde::{Deserialize, Serialize};

const LEASE: Duration = Duration::from_secs(2);
/// The lease. It is so long that a heartbeat that hangs uses only a part of it, even on a busy
/// machine. It is shorter than the time for which other calls wait for an answer.
const SLOW_LEASE: Duration = Duration::from_secs(6);
const SOON: Duration = Duration::from_secs(20);
/// How many runs of a sweep are active at the same time.
const AT_ONCE: usize = 8;
/// The number of different calls that a sweep must hit, of submit, claim, complete, fail and await.
/// Every life makes all of them. The k-th round trip may differ from life to life, so a sweep may
/// miss one.
const SCRIPTS_MIN: usize = 4;
/// The most round trips. No life here needs this many.
const ROUND_TRIPS_MAX: u64 = 200;

/// Fails in its first attempts, and records each of them.
#[derive(Serialize, Deserialize)]
struct Act {
    failures: u32,
}

/// How often each attempt of each task began.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<HashMap<(TaskId, u32), u32>>>);

impl Begun {
    fn of(&self, id: &TaskId) -> Vec<u32> {
        let begun = self.0.lock().unwrap();
        let mut attempts: Vec<u32> = begun
            .iter()
            .filter(|((task, _), _)| task == id)
            .flat_map(|((_, attempt), times)| vec![*attempt; *times as usize])
            .collect();
        attempts.sort_unstable();
        attempts
    }
}

impl Task for Act {
    const NAME: &'static str = "act";
    type Output = u32;

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(10);
        TaskOptions::new().max_retry(1).backoff(Backoff::Fixed { wait, jitter: 0.0 })
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Begun>()]
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        let begun: Begun = ctx.data().unwrap();
        *begun.0.lock().unwrap().entry((ctx.id().clone(), ctx.attempt())).or_default() += 1;
        if ctx.attempt() <= self.failures {
            return Err("asked to fail".into());
        }
        Ok(ctx.attempt())
    }
}

fn queue() -> QueueName {
    QueueName::new(QueueName::DEFAULT).unwrap()
}

/// A client and a worker behind a proxy, and a client without a proxy, which sees the real state.
struct Network {
    proxy: FaultProxy,
    direct: Bench,
    far: Bench,
    begun: Begun,
}

impl Network {
    async fn new() -> Self {
        let direct = Bench::on_redis().await;
        let proxy = FaultProxy::start(&direct.url()).await;
        let far = Bench::shared(&proxy.url(), direct.namespace()).await;
        Self { proxy, direct, far, begun: Begun::default() }
    }

    fn worker(&self, bench: &Bench) -> Running {
        bench.start(bench.worker().lease(LEASE).task_type::<Act>().data(self.begun.clone()))
    }

    /// Returns a handle of the same task without the proxy.
    fn near(&self, handle: &TaskHandle<u32>) -> TaskHandle<u32> {
        self.direct.client.handle(handle.id().clone())
    }

    async fn ends(&self, handle: &TaskHandle<u32>, state: TaskState, attempts: &[u32]) {
        let id = handle.id();
        let ended = tokio::time::timeout(SOON, handle.ended()).await;
        let ended = ended.unwrap_or_else(|_| {
            panic!("{id} does not end; the requests were {:#?}", self.proxy.requests())
        });
        assert_eq!(ended.unwrap(), state, "the outcome of {id} at its client");
        assert_eq!(self.near(handle).status().await.unwrap(), state, "{id}");
        assert_eq!(self.begun.of(id), attempts, "the attempts of {id}");
    }

    /// Returns when the lease of the worker that holds tasks ends, in ms by Redis' clock.
    async fn lease_until_ms(&self) -> i64 {
        let workers = self.direct.client.inspector().workers(&queue()).await.unwrap();
        let holder = workers.iter().find(|worker| !worker.running.is_empty());
        holder.map_or(0, |worker| worker.lease_until.timestamp_millis())
    }

    async fn is_empty(&self) -> bool {
        let counts = self.direct.client.inspector().counts(&queue()).await.unwrap();
        counts.ready + counts.delayed + counts.retry + counts.working == 0
    }
}

/// Runs a whole life: tasks that succeed, tasks that are retried and tasks that die, then a
/// shutdown. Returns the request of the `k`-th round trip, if there were as many.
async fn live(arm: fn(&FaultProxy, u64), k: u64) -> Option<String> {
    let network = Network::new().await;
    let worker = network.worker(&network.far);
    // A worker that finds no Redis at its start ends with an error. Later, it waits for Redis.
    let early = network.direct.client.submit(Act { failures: 2 }.call()).await.unwrap();
    network.ends(&early, TaskState::Dead, &[1, 2]).await;
    arm(&network.proxy, k);
    let client = &network.far.client;
    let first = client.submit(Act { failures: 0 }.call()).await.unwrap();
    let calls = [0, 1, 2].map(|failures| Act { failures }.call());
    let others = client.submit_all(calls).await.unwrap();
    network.ends(&first, TaskState::Success, &[1]).await;
    network.ends(&others[0], TaskState::Success, &[1]).await;
    network.ends(&others[1], TaskState::Success, &[1, 2]).await;
    network.ends(&others[2], TaskState::Dead, &[1, 2]).await;
    assert_eq!(first.result_within(SOON).await.unwrap(), 1);
    assert_eq!(others[1].result_within(SOON).await.unwrap(), 2);
    worker.stop().await;
    assert!(network.is_empty().await, "the worker has left keys behind");
    let at = usize::try_from(k - 1).unwrap();
    network.proxy.struck().then(|| network.proxy.requests().swap_remove(at))
}

/// Applies the fault to each round trip of a life, each time in a new life.
async fn sweep(arm: fn(&FaultProxy, u64)) {
    let mut struck = BTreeSet::new();
    for first in (1..ROUND_TRIPS_MAX).step_by(AT_ONCE) {
        let lives: Vec<_> = (first..).take(AT_ONCE).map(|k| tokio::spawn(live(arm, k))).collect();
        let mut ended = true;
        for (k, life) in (first..).zip(lives) {
            let request = life.await.unwrap_or_else(|problem| panic!("round trip {k}: {problem}"));
            ended &= request.is_none();
            struck.extend(request);
        }
        if ended {
            let scripts = struck.iter().filter(|request| request.starts_with("EVALSHA")).count();
            assert!(scripts >= SCRIPTS_MIN, "only hit {struck:#?}");
            return;
        }
    }
    panic!("a life does not end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_request_may_be_lost() {
    sweep(FaultProxy::drop_request).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_reply_may_be_lost() {
    sweep(FaultProxy::drop_reply).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_request_may_come_twice() {
    sweep(FaultProxy::duplicate).await;
}

async fn all_succeed_once(network: &Network, count: usize) -> Vec<TaskHandle<u32>> {
    let calls = (0..count).map(|_| Act { failures: 0 }.call());
    let handles = network.far.client.submit_all(calls).await.unwrap();
    for handle in &handles {
        network.ends(handle, TaskState::Success, &[1]).await;
    }
    handles
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_delivers_byte_by_byte_or_late_is_only_slow() {
    let network = Network::new().await;
    let worker = network.worker(&network.far);
    network.proxy.slices();
    all_succeed_once(&network, 50).await;
    network.proxy.delay(LEASE / 10);
    all_succeed_once(&network, 5).await;
    worker.stop().await;
    assert!(network.is_empty().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_all_the_time_lose_nothing_and_repeat_nothing() {
    let network = Network::new().await;
    let worker = network.worker(&network.far);
    all_succeed_once(&network, 1).await;
    let breaking = async {
        loop {
            for end in [FaultProxy::reset, FaultProxy::cut] {
                end(&network.proxy);
                tokio::time::sleep(LEASE / 40).await;
            }
        }
    };
    let working = async {
        for _ in 0..6 {
            all_succeed_once(&network, 5).await;
        }
    };
    tokio::select! {
        () = working => {}
        () = breaking => {}
    }
    worker.stop().await;
    assert!(network.is_empty().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_costs_no_lease_and_no_result() {
    let network = Network::new().await;
    let gate = Gate::new();
    let start = |bench: &Bench| {
        let builder = bench.worker().lease(SLOW_LEASE).task_type::<Wait>().data(gate.clone());
        bench.start(builder)
    };
    let worker = start(&network.far);
    let handle = network.direct.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    // This worker would take the tasks that the first one loses.
    let rival = start(&network.direct);

    let renewed = async || {
        let before = network.lease_until_ms().await;
        eventually("a renewal", SOON, async || network.lease_until_ms().await > before).await;
    };
    // Only a heartbeat that already has a connection can keep a dead one.
    renewed().await;
    network.proxy.half_open();
    renewed().await;
    gate.open.hit();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(gate.began.hits(), 1);
    worker.stop().await;
    rival.stop().await;
}

/// The first attempt waits for the gate and ignores a request to stop. The next attempt returns at
/// once.
#[derive(Serialize, Deserialize)]
struct Stubborn {}

impl Task for Stubborn {
    const NAME: &'static str = "stubborn";
    type Output = u32;

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        let gate: Gate = ctx.data().unwrap();
        gate.began.hit();
        if ctx.attempt() == 1 {
            gate.open.wait_for(1).await;
        }
        Ok(ctx.attempt())
    }
}

async fn reports_late_from_a_black_hole(way: Way) {
    let network = Network::new().await;
    let gate = Gate::new();
    let start = |bench: &Bench| {
        let builder = bench.worker().lease(LEASE).task_type::<Stubborn>().data(gate.clone());
        bench.start(builder)
    };
    let far = start(&network.far);
    let handle = network.direct.client.submit(Stubborn {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    network.proxy.black_hole(way);
    let near = start(&network.direct);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2, "{way:?}");
    gate.open.hit();
    network.proxy.pass();
    far.stop().await;
    near.stop().await;
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2, "{way:?}");
    let inspector = network.direct.client.inspector();
    let page = inspector.list(&queue(), TaskState::Success, None, 10).await.unwrap();
    let successes: Vec<TaskId> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(successes, [handle.id().clone()], "{way:?}");
    assert_eq!(gate.began.hits(), 2, "{way:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_from_a_black_hole_after_the_lease_changes_nothing() {
    tokio::join!(
        reports_late_from_a_black_hole(Way::Up),
        reports_late_from_a_black_hole(Way::Down),
        reports_late_from_a_black_hole(Way::Both),
    );
}

/// Its first attempt waits without end, and signals when it is dropped.
#[derive(Serialize, Deserialize)]
struct Endless {}

/// Opens the gate when it is dropped.
struct OpensGate(Gate);

impl Drop for OpensGate {
    fn drop(&mut self) {
        self.0.open.hit();
    }
}

impl Task for Endless {
    const NAME: &'static str = "endless";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let opens = OpensGate(ctx.data().unwrap());
        opens.0.began.hit();
        if opens.0.began.hits() > 1 {
            return Ok(());
        }
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_drops_handlers_that_do_not_stop() {
    let (network, gate) = (Network::new().await, Gate::new());
    let builder = network.far.worker().lease(LEASE).task_type::<Endless>();
    let far = network.far.start(builder.data(gate.clone()));
    let handle = network.direct.client.submit(Endless {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    network.proxy.black_hole(Way::Both);
    gate.open.wait_for(1).await;
    assert_eq!(gate.began.hits(), 1);
    network.proxy.pass();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(gate.began.hits(), 2);
    far.stop().await;
}
