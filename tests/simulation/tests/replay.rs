//! A seed determines a run in every detail.
use std::sync::Arc;

use optimus_simulation::{
    tasks::{Kind, Work},
    world::{Setup, World, simulate},
};

async fn scene(world: World) -> (u64, u64, Vec<u64>) {
    let world = Arc::new(world);
    let worker = world.worker(Setup::of(4));
    let process = world.next_process();
    let client = world.client(process).await.unwrap();
    let mut results = Vec::new();
    for number in 0..20 {
        let handle = client.submit(Work::new(number, Kind::Lasts(number * 10))).await.unwrap();
        results.push(handle.result().await.unwrap());
    }
    worker.stop.cancel();
    worker.main.await.unwrap().unwrap();
    (world.network.trace(), world.network.exchanges(), results)
}

#[test]
fn a_seed_runs_the_same_twice() {
    let first = simulate(7, scene);
    println!("{first:?}");
    assert_eq!(first, simulate(7, scene));
    assert_ne!(first.0, simulate(8, scene).0);
}
