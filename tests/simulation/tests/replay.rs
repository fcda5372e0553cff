//! A seed determines a run in every detail.
use std::{sync::Arc, time::Duration};

use optimus_simulation::{
    queues::Queues,
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

/// A client that has submitted to many queues keeps its ledger in each of them, every ten minutes.
async fn keeps_ledgers(mut world: World) -> (u64, u64) {
    world.queues = Queues::of(&[1; 12]);
    let client = world.client(world.next_process()).await.unwrap();
    for (number, queue) in (0..).zip(world.queues.names()) {
        let call = Work::new(number, Kind::Lasts(0)).queue(queue.as_str());
        client.submit(call).await.unwrap();
    }
    let submitted = world.network.tally().commands;
    tokio::time::sleep(Duration::from_secs(601)).await;
    (world.network.trace(), world.network.tally().commands - submitted)
}

#[test]
fn a_client_keeps_its_ledgers_in_one_order() {
    let (first, kept) = simulate(7, keeps_ledgers);
    assert!(kept >= 12, "{kept}");
    assert_eq!((first, kept), simulate(7, keeps_ledgers));
}
