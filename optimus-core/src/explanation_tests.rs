//! Tests of [`Explanation`] and [`Obstacle`].

use std::{num::NonZeroU16, time::Duration};

use super::*;
use crate::{
    id::{TaskId, WorkerId},
    limit::Limit,
    rate::Rate,
};

#[test]
fn a_number_of_tasks_is_printed_with_the_right_verb() {
    let lane = |ahead| Obstacle::Lane {
        key: "k".into(),
        holders: Vec::new(),
        ahead,
        width: NonZeroU16::new(2).unwrap(),
        width_set: None,
    };
    let start = |ahead: u64| lane(ahead).to_string().split(';').next().unwrap().to_owned();
    assert_eq!(start(0), "lane k (width 2): no task waits before it");
    assert_eq!(start(1), "lane k (width 2): 1 task waits before it");
    assert_eq!(start(2), "lane k (width 2): 2 tasks wait before it");
    let behind = Obstacle::Behind { ahead: 1, or_more: true };
    assert_eq!(behind.to_string(), "at least 1 ready task is before it");
    let blocked = |count| {
        let workers = vec![WorkerId::from_stored("vm-1-00000000")];
        Obstacle::Blocked { workers, count, since: Duration::from_millis(12_900) }.to_string()
    };
    assert_eq!(
        blocked(1),
        "handlers have blocked all threads of worker vm-1-00000000 for 12 s, so no task starts \
         there: let these handlers await, or make them plain `fn`s"
    );
    assert!(blocked(3).contains("of workers vm-1-00000000 and 2 more for"), "{}", blocked(3));
    let busy = |slots, working, elsewhere| Obstacle::Busy { slots, working, elsewhere }.to_string();
    assert_eq!(busy(1, 1, 0), "all slots are in use: 1 task runs in 1 slot");
    assert_eq!(busy(1, 0, 1), "all slots are in use: 1 task of another queue runs in 1 slot");
    assert_eq!(
        busy(3, 1, 2),
        "all slots are in use: 3 tasks run in 3 slots, 2 of them of other queues"
    );
    let ready = |blocked| Obstacle::NothingReady { blocked }.to_string();
    assert_eq!(
        [0, 1, 3].map(ready),
        [
            "no task is ready",
            "no task is ready; 1 task is blocked",
            "no task is ready; 3 tasks are blocked"
        ]
    );
}

#[test]
fn a_task_that_gathers_names_its_run() {
    let due = DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
    let run = |others| Obstacle::Run { others, leader: None, due };
    assert_eq!(
        run(2).to_string(),
        "it waits with 2 other tasks for their run, which is due at 2023-11-14T22:13:20Z"
    );
    let leader = TaskId::new(crate::id::QueueName::new("q").unwrap());
    let expected = format!("it waits with 1 other task for the run that {leader} leads");
    let led = Obstacle::Run { others: 1, leader: Some(leader), due };
    assert_eq!(led.to_string(), expected);
    let not_before = Explanation::of(vec![run(0), led]).not_before;
    assert_eq!(not_before, None, "another call may let the run start earlier");
}

#[test]
fn a_time_that_an_obstacle_says_is_not_said_twice() {
    let at = DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
    let due = Explanation::of(vec![Obstacle::NotDue { at }]);
    assert_eq!(due.not_before, Some(at));
    assert_eq!(due.to_string(), "1. it is due at 2023-11-14T22:13:20Z");
    let limit = LimitDetails {
        gate: Gate::Queue,
        limit: Limit::new().rate(Rate::per_second(1)),
        is_set: true,
        tokens: Some(0),
        next: Some(at),
        working: 0,
        waiting: 1,
        shut: None,
    };
    let limited = Explanation::of(vec![Obstacle::Limit(limit)]).to_string();
    let text = "1. the queue: 1/s, 0 may start now, the next at 2023-11-14T22:13:20Z; 1 task waits";
    assert_eq!(limited, text);
}

#[test]
fn a_lane_says_which_width_counts() {
    let lane = |width_set| Obstacle::Lane {
        key: "k".into(),
        holders: Vec::new(),
        ahead: 0,
        width: NonZeroU16::new(4).unwrap(),
        width_set,
    };
    let start = |width| lane(width).to_string().split(':').next().unwrap().to_owned();
    assert_eq!(start(None), "lane k (width 4)");
    assert_eq!(start(NonZeroU16::new(1)), "lane k (width 1, set at run time)");
}
