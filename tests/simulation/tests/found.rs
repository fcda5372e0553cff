//! Bugs that the simulation found.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use optimus_core::{Call, Client, Due, platform};
use optimus_simulation::{
    drain_and_check::{check_run, check_structure},
    exchange_fault::{Fault, Refusal},
    fault_plan::{Exchange, Fair, FaultPlan, NoHeartbeats},
    queues::queue,
    sources::{ROUNDS, SHARDS, Sources},
    tasks::{Kind, Work},
    world::{LEASE, Setup, World, simulate},
};
use optimus_testkit::{
    eventually,
    history::{Event, How, What},
};

/// Returns the number of script calls of a scene. The scene never ends if a busy loop lets no
/// virtual time pass.
fn calls_of(scene: impl AsyncFnOnce(Arc<World>) + Send + 'static) -> u64 {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let calls = simulate(1, async |world| {
            let world = Arc::new(world);
            scene(world.clone()).await;
            world.network.tally().script_calls
        });
        sender.send(calls)
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("there is no busy loop")
}

/// A plan in which a process dies when one of its waits ends.
struct DiesWoken;

impl FaultPlan for DiesWoken {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        (exchange.verb == "BLPOP").then_some(Fault::DiesAfter)
    }
}

/// A plan in which each answer to a post that is given back takes two leases.
struct SlowToGiveBack;

impl FaultPlan for SlowToGiveBack {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        (exchange.verb == "yield").then_some(Fault::Delayed(2 * LEASE))
    }
}

/// A plan in which the connection breaks at each third heartbeat of a roster, which arrives after
/// the next one.
#[derive(Default)]
struct LateHeartbeats(u32);

impl FaultPlan for LateHeartbeats {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        let is_heartbeat = exchange.verb == "hold";
        self.0 += u32::from(is_heartbeat);
        (is_heartbeat && self.0.is_multiple_of(3)).then_some(Fault::Late(LEASE / 2))
    }
}

fn due_in(number: u64, ms: u64) -> Call<Work> {
    Work::new(number, Kind::Lasts(0)).due(Due::In(Duration::from_millis(ms)))
}

/// Returns the remaining time of the only worker's lease, or none before the worker has a lease.
async fn lease_left(client: &Client) -> Option<Duration> {
    let workers = client.inspector().workers(&queue()).await.unwrap();
    let until = SystemTime::from(workers.first()?.lease_until);
    Some(until.duration_since(platform::now()).unwrap_or_default())
}

#[test]
fn a_worker_that_shuts_down_rests_though_a_task_falls_due() {
    let calls = calls_of(async |world| {
        let worker = world.worker(Setup { grace: Duration::from_secs(3), ..Setup::of(2) });
        let client = world.client(world.next_process()).await.unwrap();
        client.submit(Work::new(1, Kind::Lasts(2_000))).await.unwrap();
        client.submit(due_in(2, 500)).await.unwrap();
        let begun = async || world.network.journal.begun(1) == 1;
        eventually("the first task begins", LEASE, begun).await;
        worker.stop.cancel();
        worker.main.await.unwrap().unwrap();
    });
    assert!(calls < 50, "{calls}");
}

#[test]
fn a_worker_whose_lease_is_in_doubt_claims_nothing_that_it_could_not_start() {
    let calls = calls_of(async |world| {
        world.worker(Setup::of(2));
        let client = world.client(world.next_process()).await.unwrap();
        let has_lease = async || lease_left(&client).await.is_some();
        eventually("the worker has a lease", LEASE, has_lease).await;
        world.network.set_fault_plan(NoHeartbeats);
        // The lease is in doubt for its last tenth.
        let in_doubt = async || lease_left(&client).await < Some(LEASE / 16);
        eventually("the lease is in doubt", LEASE, in_doubt).await;
        let handle = client.submit(Work::new(1, Kind::Lasts(0))).await.unwrap();
        let over = async || lease_left(&client).await == Some(Duration::ZERO);
        eventually("the lease is over", LEASE, over).await;
        world.network.set_fault_plan(Fair);
        handle.result().await.unwrap();
    });
    assert!(calls < 50, "{calls}");
}

#[test]
fn a_client_repeats_its_one_time_calls_after_a_failover_that_lost_them() {
    calls_of(async |world| {
        world.network.keep_copies();
        let client = world.client(world.next_process()).await.unwrap();
        client.resume(&queue()).await.unwrap();
        client.submit(Work::new(1, Kind::Lasts(0))).await.unwrap();
        world.network.roll_back(8);
        client.submit(Work::new(2, Kind::Lasts(0))).await.unwrap();
        check_structure(&world.network);
        assert_eq!(world.network.wrong(), [""; 0], "the ledger will be purged");
        // The previous call found the connection broken, so the client knows about it now.
        client.submit(Work::new(3, Kind::Lasts(0))).await.unwrap();
        assert_eq!(client.inspector().queues().await.unwrap(), [queue()]);
    });
}

#[test]
fn each_call_that_was_under_way_at_a_failover_repeats_one_time_calls() {
    calls_of(async |world| {
        world.network.keep_copies();
        let client = world.client(world.next_process()).await.unwrap();
        let call = |number, queue: &'static str| Work::new(number, Kind::Lasts(0)).queue(queue);
        client.submit_all([call(1, "work"), call(2, "work1")]).await.unwrap();
        world.network.roll_back(8);
        // The first call finds the connection broken, and the second call has a new connection.
        client.submit_all([call(3, "work"), call(4, "work1")]).await.unwrap();
        check_structure(&world.network);
        assert_eq!(world.network.wrong(), [""; 0], "the ledgers will be purged");
        assert_eq!(client.inspector().queues().await.unwrap().len(), 2);
    });
}

/// Refuses one `redis.call` of the next `fail`.
struct FailRefused {
    nth: Option<usize>,
}

impl FaultPlan for FailRefused {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        let is_fail = exchange.verb == "fail";
        let nth = is_fail.then(|| self.nth.take()).flatten()?;
        Some(Fault::CallFails { script: 0, nth, refusal: Refusal::alternate(nth) })
    }
}

#[test]
fn a_dead_task_is_counted_with_all_its_bytes_whatever_redis_refused_before() {
    for nth in 0..24 {
        simulate(1, async |world| {
            let world = Arc::new(world);
            world.worker(Setup::of(1));
            let client = world.client(world.next_process()).await.unwrap();
            let dies = async |number, bytes| {
                let task = Work { number, kind: Kind::Fatal, padding: "x".repeat(bytes) };
                let handle = client.submit(Call::new(task)).await.unwrap();
                assert!(handle.result().await.unwrap_err().is_dead(), "call {nth} failed");
            };
            // From now on, Redis knows the script.
            dies(1, 0).await;
            world.network.set_fault_plan(FailRefused { nth: Some(nth) });
            dies(2, 20 * 1024).await;
            check_structure(&world.network);
            assert_eq!(world.network.wrong(), [""; 0], "call {nth} failed");
        });
    }
}

#[test]
fn lost_heartbeats_are_a_reason_for_a_worker_to_stop_its_tasks() {
    calls_of(async |world| {
        let worker = world.worker(Setup::of(2));
        let process = world.next_process();
        let client = world.client(process).await.unwrap();
        let journal = &world.network.journal;
        journal.write(process, What::Invoke { task: 1, biz: None, delay_ms: 0 });
        let handle = client.submit(Work::new(1, Kind::Lasts(3_000))).await.unwrap();
        journal.write(process, What::Acked { task: 1, id: handle.id().to_string() });
        let begun = async || journal.begun(1) == 1;
        eventually("the task begins", LEASE, begun).await;
        world.network.set_fault_plan(NoHeartbeats);
        let is_stop = |event: &Event| matches!(event.what, What::End { how: How::Stopped, .. });
        let stopped = async || journal.events().iter().any(is_stop);
        eventually("the worker stops the task", 2 * LEASE, stopped).await;
        world.network.set_fault_plan(Fair);
        let ended = async || journal.has_succeeded(1);
        eventually("the task succeeds", 4 * LEASE, ended).await;
        worker.stop.cancel();
        worker.main.await.unwrap().unwrap();
        check_run(&world).await;
        assert_eq!(world.network.wrong(), [""; 0]);
    });
}

#[test]
fn a_fault_of_a_wait_that_began_earlier_does_not_occur_after_all_faults() {
    calls_of(async |world| {
        world.network.set_fault_plan(DiesWoken);
        let worker = world.worker(Setup::of(2));
        tokio::time::sleep(LEASE / 4).await;
        world.network.end_faults();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(world.network.is_alive(worker.process));
    });
}

#[test]
fn a_worker_that_waits_while_it_gives_a_shard_back_ends_the_others_with_its_lease() {
    let calls = calls_of(async |world| {
        world.network.set_fault_plan(SlowToGiveBack);
        let setup = Setup { sources: Sources::Shards, ..Setup::of(1) };
        let members = [world.worker(setup), world.worker(setup)];
        let client = world.client(0).await.unwrap();
        let posts = &world.network.posts;
        let is_worked_on = |index: u16| posts.stays().iter().any(|stay| stay.index == index);
        while !(0..SHARDS).all(is_worked_on) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for index in 0..SHARDS {
            client.shards(ROUNDS).pause(index).await.unwrap();
            tokio::time::sleep(3 * LEASE).await;
            client.shards(ROUNDS).resume().await.unwrap();
        }
        tokio::time::sleep(3 * LEASE).await;
        assert_eq!(world.network.wrong(), [""; 0], "a shard has one worker");
        for member in members {
            member.stop.cancel();
            member.main.await.unwrap().unwrap();
        }
    });
    assert!(calls > 100, "{calls}");
}

#[test]
fn a_heartbeat_that_arrives_after_a_later_one_frees_no_shard() {
    let calls = calls_of(async |world| {
        let setup = Setup { sources: Sources::Shards, ..Setup::of(1) };
        let members = [world.worker(setup), world.worker(setup), world.worker(setup)];
        let client = world.client(0).await.unwrap();
        let posts = &world.network.posts;
        while posts.stays().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world.network.set_fault_plan(LateHeartbeats::default());
        for count in [5, 3, 6, 4].into_iter().cycle().take(20) {
            client.shards(ROUNDS).set_count(count).await.unwrap();
            tokio::time::sleep(LEASE).await;
        }
        assert_eq!(world.network.wrong(), [""; 0], "a shard has one worker");
        world.network.set_fault_plan(Fair);
        for member in members {
            member.stop.cancel();
            member.main.await.unwrap().unwrap();
        }
    });
    assert!(calls > 100, "{calls}");
}
