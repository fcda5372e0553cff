//! How often workers poll, counted over simulated hours.

use super::*;

const POLL: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(250);
const HOURS: Duration = Duration::from_secs(10 * 3600);

/// Returns the load of a worker that has begun no task yet.
fn load(is_loaded: bool, queues: u64) -> Load {
    Load { poll: POLL, is_loaded, begun: 0, queues }
}

/// Returns the longest wait between two polls of an idle worker.
fn longest_wait(workers: u32) -> Duration {
    let share = EXPONENTIAL_MAX / EXPONENTIAL_MEAN;
    POLL * 3 / 2 + (POLL * (workers - 1)).mul_f64(share) + TURN
}

/// Returns how often one of these workers polls a queue in ten hours, and the longest time between
/// two polls.
fn polls(workers: u32, mut load: Load, task_each: Option<Duration>) -> (u32, Duration) {
    let start = Instant::now();
    let (mut polls, mut turn, mut queue) = (0, Duration::ZERO, Polls::default());
    let (mut last, mut longest) = (turn, turn);
    while turn < HOURS {
        load.begun =
            task_each.map_or(0, |each| u64::try_from(turn.as_millis() / each.as_millis()).unwrap());
        if queue.is_time(start + turn, workers as usize, load) {
            polls += 1;
            longest = longest.max(turn.saturating_sub(last));
            last = turn;
        }
        turn += TURN;
    }
    (polls, longest)
}

#[test]
fn the_workers_of_a_queue_share_its_polls_idle_and_loaded() {
    for is_loaded in [false, true] {
        for workers in [1, 4, 12] {
            let (count, longest) = polls(workers, load(is_loaded, 20), None);
            let all = count * workers;
            assert!((6_000..8_400).contains(&all), "{workers} workers: {all} polls, not 7,200");
            assert!(longest <= longest_wait(workers), "{longest:?}");
        }
    }
}

#[test]
fn a_worker_polls_sometimes_however_many_others_there_are() {
    let (idle, longest) = polls(1_000_000, load(false, 20), None);
    assert!(idle > 80 && longest <= longest_wait(60), "{idle} {longest:?}");
    let (loaded, longest) = polls(1_000_000, load(true, 20), None);
    assert!(loaded > 480 && longest <= longest_wait(12), "{loaded} {longest:?}");
}

#[test]
fn workers_that_began_together_do_not_wait_together() {
    let start = Instant::now();
    let mut queues: Vec<Polls> = (0..60).map(|_| Polls::default()).collect();
    let (mut turn, mut last, mut longest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    while turn < POLL * 60 {
        let times = queues.iter_mut().map(|queue| queue.is_time(start + turn, 60, load(false, 1)));
        if times.filter(|is_time| *is_time).count() > 0 {
            (longest, last) = (longest.max(turn.saturating_sub(last)), turn);
        }
        turn += TURN;
    }
    // If the waits were uniform around the mean of 60 polls, no worker would poll the queue for 30
    // polls.
    let longest = longest.max(turn.saturating_sub(last));
    assert!(longest < POLL * 18, "no worker polled for {longest:?}");
}

#[test]
fn a_loaded_worker_that_begins_many_tasks_polls_by_itself_each_interval() {
    let (count, longest) = polls(1_000, load(true, 20), Some(Duration::from_millis(100)));
    assert!(count > 5_000 && longest <= POLL * 3 / 2 + TURN, "{count} {longest:?}");
}

#[test]
fn a_loaded_worker_polls_by_itself_no_more_often_than_it_begins_tasks() {
    let queues = 20;
    let (count, _) = polls(1_000, load(true, queues), Some(Duration::from_secs(2)));
    let tasks = 18_000;
    assert!(u64::from(count) * queues <= tasks + tasks / 2, "{count} polls of each queue");
}

#[test]
fn a_due_time_causes_one_poll() {
    let (mut queue, now) = (Polls::default(), Instant::now());
    let idle = load(false, 1);
    assert!(!queue.is_time(now, 4, idle));
    queue.due_at = Some(now + TURN);
    assert_eq!(queue.next_at(4, idle), Some(now + TURN));
    assert!(!queue.take_fired());
    assert!(queue.is_time(now + TURN, 4, idle) && queue.take_fired());
    assert!(!queue.is_time(now + TURN, 4, idle) && !queue.take_fired());
}
