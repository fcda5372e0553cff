//! When the scheduler looks at its queues, and what it sends.

use optimus_core::{Call, Client, Schedule, Task as _};
use tokio::time::sleep;

use super::*;
use crate::test_worker::{Nothing, idle_worker};

async fn put(client: &Client, name: &str, every: Duration) {
    let schedule = Schedule::every(name, every).call(Call::new(Nothing {}));
    client.schedules().put(schedule).await.expect("the schedule can be stored");
}

async fn ticks(client: &Client, name: &str) -> usize {
    client.schedules().history(name).await.unwrap().len()
}

#[tokio::test]
async fn a_worker_without_schedules_looks_at_nothing() {
    let (client, shared) = idle_worker("scheduler-nothing").await;
    let mut scheduler = Scheduler::new(shared.clone());
    put(&client, "unheard", Duration::from_secs(1)).await;
    assert_eq!(scheduler.tick().await, REST_MAX);
    assert!(scheduler.watches[0].look_at.is_none());
    shared.queues[0].tick_heard(None);
    assert_eq!(scheduler.tick().await, REST_MAX, "a heartbeat that names no schedule");
}

#[tokio::test]
async fn a_worker_ticks_what_it_has_heard_of_once_and_waits_for_the_next() {
    let (client, shared) = idle_worker("scheduler-heard").await;
    let mut scheduler = Scheduler::new(shared.clone());
    put(&client, "soon", Duration::from_secs(1)).await;
    shared.queues[0].tick_heard(Some(Duration::ZERO));
    let rest = scheduler.tick().await;
    assert!(rest <= Duration::from_secs(1) + SPREAD_MIN, "{rest:?}");
    assert_eq!(ticks(&client, "soon").await, 0, "it is not due yet");
    sleep(rest).await;
    let rest = scheduler.tick().await;
    assert!(rest > Duration::from_millis(500), "{rest:?}");
    assert_eq!(ticks(&client, "soon").await, 1);
    assert_eq!(
        client.inspector().counts(Nothing::options().queue_name()).await.unwrap().delayed,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_time_changes_nothing_and_an_earlier_one_is_looked_at() {
    let (_client, shared) = idle_worker("scheduler-earlier").await;
    let mut scheduler = Scheduler::new(shared.clone());
    let queue = &shared.queues[0];
    let mut look_in = |wait: u64| {
        queue.tick_heard(Some(Duration::from_secs(wait)));
        scheduler.hear(0, queue);
        scheduler.watches[0].look_at.unwrap() - Instant::now()
    };
    let first = look_in(60);
    assert!(first >= Duration::from_secs(60) && first <= Duration::from_secs(60) + SPREAD_MIN);
    assert_eq!(look_in(90), first);
    assert!(look_in(30) <= Duration::from_secs(30) + SPREAD_MIN);
    assert_eq!(look_in(0), Duration::ZERO);
}

#[test]
fn the_workers_of_a_queue_look_twenty_times_a_second_together() {
    let most = |workers| (0..1_000).map(|_| spread(workers)).max().unwrap();
    assert!(most(1) <= SPREAD_MIN && most(2) <= SPREAD_MIN);
    assert!((450..=500).contains(&most(10).as_millis()));
    assert!((45..=50).contains(&most(1_000).as_secs()));
}

#[tokio::test]
async fn each_step_leads_to_the_instant_of_the_next() {
    let (client, shared) = idle_worker("scheduler-steps").await;
    put(&client, "soon", Duration::from_secs(1)).await;
    let queue = &shared.queues[0].name;
    let stored = client.broker().find_schedule(queue, "soon").await.unwrap().unwrap();
    let mut schedule = stored.due();
    schedule.due_ms = 1;
    let fire = |nominal_ms| Fire { nominal_ms, missed: 0 };
    let plan = Plan { fires: vec![fire(1), fire(2)], left_out: None, next_ms: Some(3) };
    let steps = steps_of(&schedule, &plan);
    let steps: Vec<_> = steps.iter().map(|(_, step)| (step.due_ms, step.next_ms)).collect();
    assert_eq!(steps, [(1, Some(2)), (2, Some(3))]);
    let missed = Plan { fires: Vec::new(), left_out: Some(fire(2)), next_ms: None };
    let steps = steps_of(&schedule, &missed);
    let (_, step) = steps[0];
    assert_eq!((steps.len(), step.due_ms, step.next_ms), (1, 1, None));
    assert_eq!((step.fire, step.kind), (fire(2), StepKind::LeaveOut));
}
