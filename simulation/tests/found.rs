//! What the simulation found once.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use optimus_core::{Call, Due};
use optimus_simulation::{
    ending::check_structure,
    user::queue,
    weather::{Fair, NoHeartbeats},
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
        world.network.set_weather(Fair);
        handle.result().await.unwrap();
    });
    assert!(calls < 50, "{calls}");
}

#[test]
fn what_a_client_does_once_is_done_again_after_a_failover_that_lost_it() {
    calls_of(async |world| {
        world.network.keep_copies();
        let client = world.client(world.next_process()).await.unwrap();
        client.resume(&queue()).await.unwrap();
        client.submit(Work::new(1, Kind::Lasts(0))).await.unwrap();
        world.network.roll_back(8);
        client.submit(Work::new(2, Kind::Lasts(0))).await.unwrap();
        check_structure(&world.network);
        assert_eq!(world.network.wrong(), [""; 0], "the ledger will be purged");
        // The call before found the connection broken, and this one knows.
        client.submit(Work::new(3, Kind::Lasts(0))).await.unwrap();
        assert_eq!(client.inspector().queues().await.unwrap(), [queue()]);
    });
}
