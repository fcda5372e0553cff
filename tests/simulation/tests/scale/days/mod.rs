//! A month on virtual time: whole workers run tasks in some shifts of each day, many of them over
//! midnight. Then the statistics, the totals and the histories of all queues are compared with what
//! the [reference](ended) knows of each end, and the memory that they take with its bounds.

mod compare;
mod ended;
mod memory;
mod shift;

use std::{sync::Arc, time::Duration};

use optimus_core::{Client, HistoryOptions};
use optimus_simulation::{
    drain_and_check::check_structure,
    queues::Queues,
    world::{World, simulate_at},
};
use tokio::time::{Instant, sleep_until};

use self::{compare::Compare, ended::Ended, memory::Memory, shift::Shifts};

pub(crate) const DAY_MS: u64 = 86_400_000;
/// 09:00 UTC on the day of that number.
const START_MS: u64 = 20_833 * DAY_MS + 9 * 3_600_000;
const DAYS: u64 = 31;
/// The bytes of the smallest history. A program sets at least 1 MiB, and the scripts accept less.
const TIGHT: u64 = 8_000;

/// What disturbs the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Nothing, so that every count is known.
    Nothing,
    /// Workers are killed, and the clock of the store is set.
    KillsAndClocks,
}

/// What a queue keeps of its tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) days: u64,
    pub(crate) bytes: u64,
    /// The names of the tasks; all if there are none.
    pub(crate) tasks: &'static [&'static str],
}

/// The histories of the queues, in their order.
pub(crate) const KEPT: [Kept; 4] = [
    Kept { days: 60, bytes: 64 << 20, tasks: &[] },
    Kept { days: 7, bytes: 64 << 20, tasks: &[] },
    Kept { days: 60, bytes: TIGHT, tasks: &[] },
    Kept { days: 60, bytes: 64 << 20, tasks: &["mute"] },
];

async fn keep_histories(world: &World, client: &Client) {
    for (queue, kept) in world.queues.names().iter().zip(KEPT) {
        if kept.bytes == TIGHT {
            let wanted = Some((60, TIGHT, "*"));
            client.broker().retain(queue, wanted).await.unwrap();
            continue;
        }
        let mut options = HistoryOptions::days(u32::try_from(kept.days).unwrap());
        if !kept.tasks.is_empty() {
            options = options.tasks(kept.tasks.iter().copied());
        }
        client.keep_history(queue, &options).await.unwrap();
    }
}

/// Runs a month from a seed, and returns how many attempts ended.
fn month(seed: u64, harm: Harm) -> usize {
    simulate_at(START_MS, seed, async |mut world| {
        world.queues = Queues::of(&[1; KEPT.len()]);
        let (world, begun) = (Arc::new(world), Instant::now());
        let client = world.client(0).await.unwrap();
        keep_histories(&world, &client).await;
        let origin_ns = world.network.journal.now_ns();
        let random = fastrand::Rng::with_seed(!seed);
        let mut shifts = Shifts::new(world.clone(), client.clone(), random, harm);
        let mut memory = Memory::default();
        for day in 0..DAYS {
            for at_ms in shifts.begins(day) {
                let since_start = Duration::from_millis(at_ms - START_MS);
                sleep_until(begun + since_start).await;
                shifts.work().await;
                memory.look(&world);
            }
            let is_last = day + 1 == DAYS;
            if day % 10 == 9 || is_last {
                let ended = Ended::all(&world, &shifts, (origin_ns, START_MS));
                Compare { client: &client, ended: &ended, harm, is_last }.all(&world).await;
            }
        }
        memory.expect_bounds();
        check_structure(&world.network);
        assert_eq!(world.network.wrong(), [""; 0]);
        let ended = Ended::all(&world, &shifts, (origin_ns, START_MS));
        println!("seed {seed}, {harm:?}: {} ends in {DAYS} days, {memory}", ended.len());
        ended.len()
    })
}

#[test]
fn a_month_of_workers_is_counted_exactly_by_minutes_hours_and_days() {
    assert!(month(1, Harm::Nothing) > 3_000);
}

#[test]
fn a_month_of_killed_workers_and_clocks_that_are_set_is_counted_within_what_was_lost() {
    assert!(month(2, Harm::KillsAndClocks) > 3_000);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "minutes; cargo xtask scale runs it"]
    fn months_of_sixteen_seeds_are_counted() {
        for seed in 0..16 {
            month(1_000 + seed, if seed % 2 == 0 { Harm::Nothing } else { Harm::KillsAndClocks });
        }
    }
}
