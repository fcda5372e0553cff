//! The commands of workers that have nothing to claim, counted over minutes of virtual time.

use std::{sync::Arc, time::Duration};

use optimus_core::Client;
use optimus_simulation::{
    queues::Queues,
    tasks::{Kind, Work},
    world::{Setup, World, simulate},
};
use optimus_testkit::eventually;
use tokio::time::sleep;

const SOON: Duration = Duration::from_secs(60);
/// After this time, workers that started together no longer act together.
const SETTLED: Duration = Duration::from_secs(300);
const SECONDS: u32 = 300;

/// Returns the default setup of a worker, with one slot.
fn setup() -> Setup {
    let (poll, lease) = (Duration::from_secs(5), Duration::from_secs(15));
    Setup { poll, lease, ..Setup::of(1) }
}

/// Runs a task for this time on each worker.
async fn fill_slots(world: &World, client: &Client, workers: usize) {
    let workers = workers as u64;
    let long = |number| Work::new(number, Kind::Lasts(1_000 * 3_600)).timeout(SOON * 60);
    client.submit_all((0..workers).map(long)).await.unwrap();
    let begun = async || (0..workers).all(|number| world.network.journal.begun(number) == 1);
    eventually("each slot is filled", SOON, begun).await;
}

/// The slots of the workers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slots {
    Idle,
    Full,
}

/// Returns the commands per second of this many workers that serve this many queues.
fn rate(workers: usize, queues: usize, slots: Slots) -> f64 {
    simulate(1, async |mut world| {
        world.queues = Queues::of(&vec![1; queues]);
        let world = Arc::new(world);
        for _ in 0..workers {
            world.worker(setup());
        }
        if slots == Slots::Full {
            let client = world.client(world.next_process()).await.unwrap();
            fill_slots(&world, &client, workers).await;
        }
        sleep(SETTLED).await;
        let before = world.network.tally().commands;
        sleep(Duration::from_secs(SECONDS.into())).await;
        let sent = u32::try_from(world.network.tally().commands - before).unwrap();
        let rate = f64::from(sent) / f64::from(SECONDS);
        println!("{workers} workers of {queues} queues, {slots:?}: {rate:.3} commands/s");
        rate
    })
}

#[test]
fn an_idle_worker_of_one_queue_sends_three_commands_in_four_seconds() {
    let rate = rate(1, 1, Slots::Idle);
    assert!(rate <= 0.75, "{rate}");
}

#[test]
fn workers_without_an_idle_slot_share_their_polls_of_queues_without_work() {
    let (idle, full) = (rate(20, 10, Slots::Idle), rate(20, 10, Slots::Full));
    assert!(full <= idle * 1.5, "{full}, while idle ones send {idle}");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "minutes; cargo xtask scale runs it"]
    fn idle_workers_of_20_queues_send_so_little_that_a_thousand_send_600_commands_a_second() {
        // The workers send one poll in 15 s for each of the 20 queues and one for all other queues,
        // for any number of workers.
        let upkeep = 21.0 / 15.0;
        // From 80 workers on, each worker sends the same number of commands.
        let each = (rate(80, 20, Slots::Idle) - upkeep) / 80.0;
        let thousand = 1_000.0 * each + upkeep;
        assert!(thousand <= 600.0, "{thousand}");
    }
}
