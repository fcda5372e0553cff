//! What the simulation found once.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use optimus_core::{Call, Due};
use optimus_simulation::{
    fault::{Fault, Silence},
    weather::{Exchange, Weather},
    work::{Kind, Work},
    world::{LEASE, Setup, World, simulate},
};
use tokio::time::sleep;

const SETUP: Setup = Setup {
    concurrency: 2,
    poll: Duration::from_secs(1),
    grace: Duration::from_secs(3),
    knows_all: true,
};

/// How many script calls a scene took. Who spins lets no virtual time pass, so it takes for ever.
fn calls_of(scene: impl AsyncFnOnce(Arc<World>) + Send + 'static) -> u64 {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let calls = simulate(1, async |world| {
            let world = Arc::new(world);
            scene(world.clone()).await;
            world.network.tally().script_calls
        });
        tell.send(calls)
    });
    told.recv_timeout(Duration::from_secs(60)).expect("nobody spins")
}

fn due_in(number: u64, ms: u64) -> Call<Work> {
    Work::new(number, Kind::Lasts(0)).due(Due::In(Duration::from_millis(ms)))
}

#[test]
fn a_worker_that_shuts_down_rests_though_a_task_falls_due() {
    let calls = calls_of(async |world| {
        let worker = world.worker(SETUP);
        let client = world.client(world.next_process()).await.unwrap();
        client.submit(Work::new(1, Kind::Lasts(2_000))).await.unwrap();
        client.submit(due_in(2, 500)).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        worker.stop.cancel();
        worker.main.await.unwrap().unwrap();
    });
    assert!(calls < 50, "{calls}");
}

/// No heartbeat arrives, and all else does.
struct NoHeartbeats;

impl Weather for NoHeartbeats {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        (exchange.verb == "renew").then_some(Fault::RequestLost(Silence::Broken))
    }
}

#[test]
fn a_worker_whose_lease_is_in_doubt_claims_nothing_that_it_could_not_start() {
    let calls = calls_of(async |world| {
        world.worker(SETUP);
        sleep(Duration::from_millis(100)).await;
        world.network.set_weather(NoHeartbeats);
        // Some time between the doubt and the end of the lease.
        sleep(LEASE.mul_f64(0.9)).await;
        let client = world.client(world.next_process()).await.unwrap();
        let handle = client.submit(Work::new(1, Kind::Lasts(0))).await.unwrap();
        sleep(LEASE / 4).await;
        world.network.set_weather(optimus_simulation::weather::Fair);
        handle.result().await.unwrap();
    });
    assert!(calls < 50, "{calls}");
}
