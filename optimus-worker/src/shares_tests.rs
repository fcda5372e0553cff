//! Shares by weight, counted over simulated seconds.

use std::collections::BTreeMap;

use super::*;

const SECOND_US: u64 = 1_000_000;
/// The most tasks of a turn.
const MOST: usize = BATCH_MAX;

/// A worker in simulated time. All tasks of a queue take the same time, and a turn follows each
/// moment in which some tasks end.
struct World {
    shares: Shares,
    slots: usize,
    took_us: Vec<u64>,
    /// The future ends of tasks: the time, the queue, and the number.
    ends: BTreeMap<(u64, usize), usize>,
    running: Vec<usize>,
    /// The number of tasks that are left in each queue.
    waiting: Vec<usize>,
    calls: usize,
}

impl World {
    fn new(slots: usize, queues: &[(u32, u64)]) -> Self {
        Self {
            shares: Shares::new(Order::Weighted, queues.iter().map(|(weight, _)| *weight)),
            slots,
            took_us: queues.iter().map(|(_, took_us)| *took_us).collect(),
            ends: BTreeMap::new(),
            running: vec![0; queues.len()],
            waiting: vec![usize::MAX; queues.len()],
            calls: 0,
        }
    }

    /// Runs from one moment to another. Returns how many tasks started in each queue.
    fn run(&mut self, base: Instant, from_us: u64, to_us: u64) -> Vec<usize> {
        let mut started = vec![0; self.running.len()];
        let mut now = from_us;
        while now < to_us {
            while let Some((end, count)) = self.ends.first_key_value().map(|(e, c)| (*e, *c))
                && end.0 <= now
            {
                self.running[end.1] -= count;
                self.ends.remove(&end);
            }
            let idle = self.slots - self.running.iter().sum::<usize>();
            let open = (0..self.running.len()).filter(|at| self.waiting[*at] > 0);
            let open = open.map(|at| Open { at, running: self.running[at] }).collect::<Vec<_>>();
            for (at, want) in
                self.shares.divide(base + Duration::from_micros(now), idle, MOST, &open)
            {
                let granted = want.min(self.waiting[at]);
                self.calls += 1;
                self.shares.answered(at, want, granted);
                self.running[at] += granted;
                started[at] += granted;
                *self.ends.entry((now + self.took_us[at], at)).or_default() += granted;
                if self.waiting[at] != usize::MAX {
                    self.waiting[at] -= granted;
                    if self.waiting[at] == 0 {
                        self.shares.had_no_work(at);
                    }
                }
            }
            assert!(self.running.iter().sum::<usize>() <= self.slots);
            // A turn takes at least 200 µs.
            let next_end = self.ends.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
            now = next_end.max(now + 200).min(now + 10_000);
        }
        started
    }
}

/// Checks that each queue gets its share in every second after the first. The tolerance is a few
/// percent and a few tasks.
fn check_seconds(slots: usize, queues: &[(u32, u64)], seconds: u64, percent: usize, tasks: usize) {
    let (mut world, base) = (World::new(slots, queues), Instant::now());
    let total: usize = queues.iter().map(|(weight, _)| *weight as usize).sum();
    for second in 0..seconds {
        let started = world.run(base, second * SECOND_US, (second + 1) * SECOND_US);
        let all: usize = started.iter().sum();
        for (at, count) in started.iter().enumerate().filter(|_| second > 0) {
            let due = all * queues[at].0 as usize / total;
            let off = count.abs_diff(due);
            assert!(
                off <= due * percent / 100 + tasks,
                "{slots} slots, second {second}: queue {at} of weight {} started {count}, not \
                 {due}, of {all}",
                queues[at].0
            );
        }
    }
}

#[test]
fn shares_are_by_weight_in_every_second_from_two_to_two_hundred_queues() {
    for slots in [1, 2, 16, 64, 256, 4_096] {
        for took_us in [1_000, 10_000] {
            let mut nine = vec![(1, took_us); 8];
            nine.push((100, took_us));
            for queues in [nine, vec![(1, took_us); 2], vec![(3, took_us), (1, took_us)]] {
                check_seconds(slots, &queues, 4, 10, 2);
            }
            check_seconds(slots, &vec![(7, took_us); 64], 4, 10, 2);
            check_seconds(slots, &vec![(1, took_us); 200], 4, 10, 2);
            let mixed: Vec<(u32, u64)> = (0..200).map(|at| (1 + at % 1_000, took_us)).collect();
            check_seconds(slots, &mixed, 4, 10, 2);
        }
    }
    let thousand = [(1, 2_000), (1_000, 2_000), (10, 2_000)];
    check_seconds(256, &thousand, 4, 10, 2);
}

#[test]
fn a_queue_of_long_tasks_leaves_the_others_their_slots() {
    let (mut world, base) = (World::new(64, &[(1, 600 * SECOND_US), (1, 1_000)]), Instant::now());
    let started = world.run(base, 0, 5 * SECOND_US);
    assert_eq!(world.running[0], 32, "its share");
    assert!(started[1] > 32 * 4_000, "{started:?}");
    let (mut world, base) = (World::new(64, &[(1, 600 * SECOND_US), (100, 1_000)]), Instant::now());
    world.run(base, 0, 5 * SECOND_US);
    assert_eq!(world.running[0], 1);
}

#[test]
fn a_lone_queue_has_all_slots_and_shares_them_once_another_has_work() {
    let (mut world, base) = (World::new(64, &[(1, 10_000), (1, 10_000)]), Instant::now());
    world.waiting[1] = 0;
    world.shares.had_no_work(1);
    world.run(base, 0, 60 * SECOND_US);
    assert_eq!(world.running, [64, 0]);
    world.waiting[1] = usize::MAX;
    // The service that a queue did not need for a minute is not owed to it.
    let started = world.run(base, 60 * SECOND_US, 61 * SECOND_US);
    assert!(started[0].abs_diff(started[1]) < started[0] / 10, "{started:?}");
}

#[test]
fn what_a_queue_got_while_it_was_alone_is_no_debt_once_others_have_work() {
    let (base, mut now) = (Instant::now(), 0);
    let mut world = World::new(4, &[(1, 30_000); 10]);
    world.waiting = vec![0; 10];
    for _ in 0..50 {
        world.waiting[0] = 1;
        let started = world.run(base, now, now + 40_000);
        assert_eq!(started[0], 1);
        now += 40_000;
    }
    world.waiting = vec![usize::MAX; 10];
    let started = world.run(base, now, now + SECOND_US);
    let total: usize = started.iter().sum();
    assert!(started[0] + 4 >= total / 10, "{started:?}");
}

#[test]
fn queues_with_little_work_leave_their_slots_to_the_others() {
    let (mut world, base) = (World::new(64, &[(1, 10_000), (1_000, 10_000)]), Instant::now());
    for second in 0..5 {
        world.waiting[1] = 3;
        let started = world.run(base, second * SECOND_US, (second + 1) * SECOND_US);
        assert_eq!(started[1], 3);
        assert!(started[0] > 6_000, "{started:?}");
    }
}

#[test]
fn many_queues_of_short_tasks_are_served_many_at_a_time_and_in_turn() {
    let (mut world, base) = (World::new(64, &[(1, 200); 64]), Instant::now());
    world.run(base, 0, SECOND_US);
    world.calls = 0;
    let started = world.run(base, SECOND_US, 2 * SECOND_US);
    let all: usize = started.iter().sum();
    assert!(all / world.calls >= 16, "{all} tasks in {} calls", world.calls);
}

#[test]
fn a_queue_of_long_tasks_has_half_of_many_slots_beside_one_of_short_tasks() {
    let mut world = World::new(4_096, &[(1, SECOND_US), (1, 1_000)]);
    world.run(Instant::now(), 0, 3 * SECOND_US);
    assert!(world.running[0].abs_diff(2_048) < 100, "{:?}", world.running);
}

#[test]
fn a_turn_is_bounded() {
    let mut shares = Shares::new(Order::Weighted, vec![1; 200].into_iter());
    let open: Vec<Open> = (0..200).map(|at| Open { at, running: 0 }).collect();
    let given = shares.divide(Instant::now(), 100_000, MOST, &open);
    assert!(given.len() <= TURN_QUEUES_MAX);
    assert!(given.iter().map(|(_, want)| want).sum::<usize>() <= MOST);
}

#[test]
fn strict_order_gives_all_to_the_first_with_work() {
    let mut shares = Shares::new(Order::Strict, [1, 1].into_iter());
    let open = [0, 1].map(|at| Open { at, running: 0 });
    assert_eq!(shares.divide(Instant::now(), 10, MOST, &open), [(0, 10)]);
    assert_eq!(shares.divide(Instant::now(), 10, MOST, &open[1..]), [(1, 10)]);
    assert!(shares.divide(Instant::now(), 0, MOST, &open).is_empty());
}

#[test]
fn a_turn_for_reports_alone_changes_no_share() {
    let mut shares = Shares::new(Order::Weighted, [1, 100].into_iter());
    let base = Instant::now();
    let mut started = [0, 0];
    for ms in 0..1_010 {
        let now = base + Duration::from_millis(ms);
        let open = |running: [usize; 2]| [0, 1].map(|at| Open { at, running: running[at] });
        let given = shares.divide(now, 1, MOST, &open([0, 0]));
        let [(at, 1)] = given[..] else { panic!("{given:?}") };
        shares.answered(at, 1, 1);
        started[at] += 1;
        let running = [0, 1].map(|queue| usize::from(queue == at));
        assert!(shares.divide(now, 0, MOST, &open(running)).is_empty());
    }
    assert!((9..=12).contains(&started[0]), "{started:?}");
}

/// Returns the starts of each queue in 20 s, when tasks take 20 to 60 ms and a turn takes
/// `turn_us`.
fn starts_of(slots: usize, weights: &[u32], turn_us: u64) -> Vec<usize> {
    let mut shares = Shares::new(Order::Weighted, weights.iter().copied());
    let (mut running, mut started) = (vec![0; weights.len()], vec![0; weights.len()]);
    let (mut ends, mut random) = (Vec::<(u64, usize)>::new(), fastrand::Rng::with_seed(1));
    let (mut now, base) = (0, Instant::now());
    while now < 20 * SECOND_US {
        let open: Vec<Open> =
            (0..weights.len()).map(|at| Open { at, running: running[at] }).collect();
        let idle = slots - running.iter().sum::<usize>();
        let asked = shares.divide(base + Duration::from_micros(now), idle, MOST, &open);
        let next_end = ends.iter().map(|(end, _)| *end).min().unwrap_or(0);
        now = if asked.is_empty() { next_end.max(now + 1) } else { now + turn_us };
        for (at, want) in asked {
            shares.answered(at, want, want);
            running[at] += want;
            started[at] += want;
            ends.extend((0..want).map(|_| (now + random.u64(20_000..60_000), at)));
        }
        for (_, at) in ends.extract_if(.., |(end, _)| *end <= now) {
            running[at] -= 1;
        }
    }
    started
}

#[test]
fn heavy_queues_have_their_share_of_few_slots_among_many_light_ones() {
    let mut weights = vec![100; 3];
    weights.extend((0..36).map(|at| [1, 2, 3, 5, 10][at % 5]));
    let total: u32 = weights.iter().sum();
    for turn_us in [200, 3_000, 6_000] {
        let started = starts_of(8, &weights, turn_us);
        let all: usize = started.iter().sum();
        for (started, weight) in started.iter().zip(&weights).filter(|(_, weight)| **weight > 3) {
            let due = all * *weight as usize / total as usize;
            assert!(started.abs_diff(due) <= due / 10 + 2, "{started} of {due}, weight {weight}");
        }
    }
}
