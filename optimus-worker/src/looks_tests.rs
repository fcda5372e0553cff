//! How often workers look, counted over simulated hours.

use super::*;

const POLL: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(250);
const HOURS: Duration = Duration::from_secs(10 * 3600);

/// Of a worker that begins a task in so much time, if any.
fn load(is_loaded: bool, queues: u64) -> Load {
    Load { poll: POLL, is_loaded, begun: 0, queues }
}

/// The longest wait between two looks of an idle worker, in looks of all workers.
fn longest_wait(workers: u32) -> Duration {
    let share = SHARES_APART_MAX / SHARES_APART_MEAN;
    POLL * 3 / 2 + (POLL * (workers - 1)).mul_f64(share) + TURN
}

/// How often one worker of so many looks at a queue in ten hours, and the longest time without.
fn looks(workers: u32, mut load: Load, task_each: Option<Duration>) -> (u32, Duration) {
    let start = Instant::now();
    let (mut looks, mut turn, mut queue) = (0, Duration::ZERO, Looks::default());
    let (mut last, mut longest) = (turn, turn);
    while turn < HOURS {
        load.begun =
            task_each.map_or(0, |each| u64::try_from(turn.as_millis() / each.as_millis()).unwrap());
        if queue.come(start + turn, workers as usize, load) {
            looks += 1;
            longest = longest.max(turn.saturating_sub(last));
            last = turn;
        }
        turn += TURN;
    }
    (looks, longest)
}

#[test]
fn the_workers_of_a_queue_share_its_looks_idle_and_loaded() {
    for is_loaded in [false, true] {
        for workers in [1, 4, 12] {
            let (count, longest) = looks(workers, load(is_loaded, 20), None);
            let all = count * workers;
            assert!((6_000..8_400).contains(&all), "7,200 polls: {all} looks of {workers} workers");
            assert!(longest <= longest_wait(workers), "{longest:?}");
        }
    }
}

#[test]
fn a_worker_looks_now_and_then_however_many_others_there_are() {
    let (idle, longest) = looks(1_000_000, load(false, 20), None);
    assert!(idle > 80 && longest <= longest_wait(60), "{idle} {longest:?}");
    let (loaded, longest) = looks(1_000_000, load(true, 20), None);
    assert!(loaded > 480 && longest <= longest_wait(12), "{loaded} {longest:?}");
}

#[test]
fn workers_that_began_together_do_not_wait_together() {
    let start = Instant::now();
    let mut queues: Vec<Looks> = (0..60).map(|_| Looks::default()).collect();
    let (mut turn, mut last, mut longest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    while turn < POLL * 60 {
        let looks = queues.iter_mut().map(|queue| queue.come(start + turn, 60, load(false, 1)));
        if looks.filter(|looked| *looked).count() > 0 {
            (longest, last) = (longest.max(turn.saturating_sub(last)), turn);
        }
        turn += TURN;
    }
    // Uniform waits around the mean of 60 polls leave the queue alone for 30 polls.
    let longest = longest.max(turn.saturating_sub(last));
    assert!(longest < POLL * 18, "nobody looked for {longest:?}");
}

#[test]
fn a_loaded_worker_that_begins_many_tasks_looks_each_poll_by_itself() {
    let (count, longest) = looks(1_000, load(true, 20), Some(Duration::from_millis(100)));
    assert!(count > 5_000 && longest <= POLL * 3 / 2 + TURN, "{count} {longest:?}");
}

#[test]
fn a_loaded_worker_looks_no_more_often_by_itself_than_it_begins_tasks() {
    let queues = 20;
    let (count, _) = looks(1_000, load(true, queues), Some(Duration::from_secs(2)));
    let tasks = 18_000;
    assert!(u64::from(count) * queues <= tasks + tasks / 2, "{count} looks at each queue");
}

#[test]
fn a_due_time_is_a_reason_to_look_once() {
    let (mut queue, now) = (Looks::default(), Instant::now());
    let idle = load(false, 1);
    assert!(!queue.come(now, 4, idle));
    queue.due_at = Some(now + TURN);
    assert_eq!(queue.next_at(4, idle), Some(now + TURN));
    assert!(!queue.take_fired());
    assert!(queue.come(now + TURN, 4, idle) && queue.take_fired());
    assert!(!queue.come(now + TURN, 4, idle) && !queue.take_fired());
}
