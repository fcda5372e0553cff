//! Workers whose tasks last an hour, with many quarantined tasks that may have killed a worker. No
//! worker stops its claims for long because of them, and all of them run at some time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use optimus_core::{Call, Client, TaskHandle};
use optimus_simulation::{
    queues::Queues,
    tasks::{Kind, Neighbour, Work},
    world::{Setup, World, simulate},
};
use optimus_testkit::{eventually, history::What};
use tokio::time::{Instant, sleep};

const WORKERS: usize = 16;
const SLOTS: usize = 64;
const HOUR: Duration = Duration::from_secs(3_600);
const LEASE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(300);
/// The interval at which a worker receives a small task. The wait of this task shows whether the
/// worker claims.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// The longest time for which a worker may claim nothing because of quarantined tasks.
const DRAIN_MAX: Duration = Duration::from_secs(300);
/// The time that a wakeup and the exchanges of a claim need.
const SLACK: Duration = Duration::from_secs(1);

/// The numbers of tasks: quarantined tasks first, then long ones, then small ones.
const LONG: u64 = 1_000;
const PROBES: u64 = 1_000_000;

/// Returns the setup of a worker. All workers share the first queue, and each worker has its own
/// queue.
fn setup(worker: usize) -> Setup {
    let serves = 1 | 1 << (worker + 1);
    Setup { lease: LEASE, poll: PROBE_EVERY, serves, ..Setup::of(SLOTS) }
}

fn call(world: &World, worker: usize, (number, lasts): (u64, Duration)) -> Call<Work> {
    let ms = lasts.as_millis().try_into().unwrap();
    let queue = world.queues.names()[worker + 1].to_string();
    Work::new(number, Kind::Lasts(ms)).queue(queue).timeout(HOUR * 2)
}

/// Submits tasks that two workers lost. The next loss would mark each of them Dead.
async fn quarantine(world: &Arc<World>, client: &Client, count: usize) -> Vec<TaskHandle<u64>> {
    let neighbours = (0..count as u64).map(|number| Call::new(Neighbour { number }));
    let quarantine = client.submit_all(neighbours).await.unwrap();
    for losses in 1..=2 {
        let victim = world.worker(Setup { lease: LEASE, serves: 1, ..Setup::of(count) });
        let all_begun =
            async || (0..count as u64).all(|number| world.network.journal.begun(number) == losses);
        eventually("the victim has begun all tasks", SOON, all_begun).await;
        world.network.kill(victim.process);
    }
    quarantine
}

/// Returns how long each small task of a worker waited, from its submit to its start.
fn waits(world: &World, submitted: &BTreeMap<u64, u64>) -> Vec<Vec<(u64, u64)>> {
    let mut waits = vec![Vec::new(); WORKERS];
    for event in world.network.journal.events() {
        let What::Begin { task, .. } = event.what else { continue };
        let Some(since) = submitted.get(&task) else { continue };
        waits[usize::try_from(task - PROBES).unwrap() % WORKERS].push((*since, event.at));
    }
    waits
}

/// Returns how long a worker paused: in total, and without a break.
fn stood_still(waits: &[(u64, u64)]) -> (Duration, Duration) {
    let (mut total, mut longest, mut until) = (0, 0, 0);
    for (since, begun) in waits.iter().collect::<BTreeSet<_>>() {
        total += begun.saturating_sub(until.max(*since));
        longest = longest.max(begun - since);
        until = until.max(*begun);
    }
    (Duration::from_nanos(total), Duration::from_nanos(longest))
}

/// Checks that workers whose tasks last this long still claim, and then run the quarantined tasks.
fn all_continue_claiming(count: usize, lasts: Duration) {
    simulate(1, async |mut world| {
        world.queues = Queues::of(&[1; WORKERS + 1]);
        let world = Arc::new(world);
        let client = world.client(world.next_process()).await.unwrap();
        let quarantine = quarantine(&world, &client, count).await;
        let processes: Vec<_> = (0..WORKERS).map(|worker| world.worker(setup(worker))).collect();
        let half = SLOTS as u64 / 2;
        let long = (0..WORKERS as u64 * half).map(|number| {
            let worker = usize::try_from(number / half).unwrap();
            call(&world, worker, (LONG + number, lasts))
        });
        client.submit_all(long).await.unwrap();

        let (begun, mut submitted) = (Instant::now(), BTreeMap::new());
        let is_late = |at: Instant| at + DRAIN_MAX / 2 > begun + lasts;
        while !is_late(Instant::now()) {
            let from = PROBES + submitted.len() as u64;
            let probe = |worker| call(&world, worker, (from + worker as u64, Duration::ZERO));
            let now = world.network.journal.now_ns();
            submitted.extend((0..WORKERS as u64).map(|worker| (from + worker, now)));
            client.submit_all((0..WORKERS).map(probe)).await.unwrap();
            sleep(PROBE_EVERY).await;
        }
        let time = begun.elapsed();
        for quarantined in quarantine {
            quarantined.result_within(DRAIN_MAX + SOON).await.unwrap();
        }
        let (mut most, mut longest) = (Duration::ZERO, Duration::ZERO);
        for waits in waits(&world, &submitted) {
            let (total, at_once) = stood_still(&waits);
            (most, longest) = (most.max(total), longest.max(at_once));
        }
        println!(
            "{count} quarantined: in {time:.0?}, a worker paused for {most:.1?} at most, and for \
             {longest:.1?} without a break"
        );
        assert!(longest > PROBE_EVERY, "no worker drained");
        assert!(longest <= DRAIN_MAX + SLACK, "{longest:?}");
        assert!(most <= time / 5 + longest, "{most:?} of {time:?}");
        for worker in &processes {
            worker.stop.cancel();
        }
        for worker in processes {
            worker.main.await.unwrap().unwrap();
        }
        assert_eq!(world.network.wrong(), [""; 0]);
    });
}

#[test]
fn sixteen_workers_with_long_tasks_continue_claiming_with_quarantined_tasks() {
    all_continue_claiming(3, Duration::from_secs(900));
}

mod long {
    use super::*;

    #[test]
    #[ignore = "minutes; cargo xtask scale runs it"]
    fn sixteen_workers_with_tasks_of_an_hour_continue_claiming_with_64_quarantined_tasks() {
        all_continue_claiming(64, HOUR);
    }
}
