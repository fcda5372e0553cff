//! The lanes and limits of a load with flows.

use std::num::NonZeroU16;
use std::time::Duration;

use optimus_core::broker::Broker;
use optimus_core::{Gate, Lane, LaneFailure, Limit, QueueName, Rate, TaskLimit};
use optimus_testkit::history::{IfDead, What};
use tokio::time::sleep;

use crate::journal::Journal;

/// The lanes of each queue: the key, the width, and what happens if a task dies.
const LANES: [(&str, u16, LaneFailure); 4] = [
    ("one", 1, LaneFailure::Skip),
    ("strict", 1, LaneFailure::Block),
    ("two", 2, LaneFailure::Skip),
    ("three", 3, LaneFailure::Block),
];
/// The lane whose starts have a rate.
const RATED_LANE: &str = "two";
/// The limit that operators change.
pub(crate) const CHANGED: &str = "changed";
const AGAIN: Duration = Duration::from_millis(100);
const TRIES_MAX: u32 = 100;

fn named(name: &str, limit: Limit) -> TaskLimit {
    TaskLimit { gate: Gate::Named(name.to_owned()), limit }
}

/// How many more tasks of a lane of several operators let run at once at most.
const WIDER_BY: u16 = 2;

/// The lanes whose widths operators change, each with the largest width that they set.
pub(crate) fn changing_lanes() -> Vec<(&'static str, u16)> {
    let wide = LANES.iter().filter(|(_, width, _)| *width > 1);
    wide.map(|(key, width, _)| (*key, width + WIDER_BY)).collect()
}

/// How many tasks of a lane may run at once at any time.
pub(crate) fn widest(lane: &Lane) -> u16 {
    let mut all = changing_lanes().into_iter();
    let changing = all.find(|(key, _)| *key == lane.key);
    changing.map_or(lane.width.get(), |(_, widest)| widest)
}

/// Returns the lane of this number.
pub(crate) fn lane(number: usize) -> Lane {
    let (key, width, on_failure) = LANES[number % LANES.len()];
    let width = NonZeroU16::new(width).unwrap_or(NonZeroU16::MIN);
    Lane { key: key.to_owned(), width, on_failure }
}

/// What a death in the lane means, in words of the history.
pub(crate) fn if_dead(lane: &Lane) -> IfDead {
    match lane.on_failure {
        LaneFailure::Skip => IfDead::Skip,
        LaneFailure::Block => IfDead::Block,
    }
}

/// The limits that always have the same rule.
fn fixed() -> [TaskLimit; 6] {
    let rate = |per_second| Limit::new().rate(Rate::per_second(per_second));
    [
        named("slow", rate(5).burst(3).max_working(2)),
        named("tenant0", Limit::new().max_working(1)),
        named("tenant1", rate(30).max_working(2)),
        named("all", rate(40).burst(4).max_working(6)),
        named("often", rate(200)),
        TaskLimit { gate: Gate::Lane(RATED_LANE.to_owned()), limit: rate(25) },
    ]
}

/// Returns the limits of a task, innermost first.
pub(crate) fn limits(number: usize, lane: Option<&Lane>) -> Vec<TaskLimit> {
    let [slow, tenant0, tenant1, all, often, rated_lane] = fixed();
    let changed = named(CHANGED, Limit::new().max_working(2));
    let mut limits = match number % 6 {
        0 => vec![slow],
        1 => vec![tenant0, all],
        2 => vec![tenant1, all],
        3 => vec![changed],
        4 => vec![often, changed],
        _ => vec![all],
    };
    if lane.is_some_and(|lane| lane.key == RATED_LANE) {
        limits.insert(0, rated_lane);
    }
    limits
}

/// Returns the name of a gate in the history.
pub(crate) fn name_of(queue: &QueueName, gate: &Gate) -> String {
    format!("{queue}/{}", gate.stored())
}

/// Records what each limit allows.
pub(crate) fn write_rules(journal: &Journal, queues: &[QueueName]) {
    for queue in queues {
        for TaskLimit { gate, limit } in fixed() {
            let interval = limit.rate_limit().map_or(Duration::ZERO, |rate| rate.interval());
            journal.write(
                0,
                What::Rule {
                    interval_us: u64::try_from(interval.as_micros()).unwrap_or(u64::MAX),
                    burst: limit.burst_limit().into(),
                    max_working: limit.max_working_limit().unwrap_or(0).into(),
                    limit: name_of(queue, &gate),
                },
            );
        }
    }
}

/// The gates that operators pause or change.
pub(crate) fn gates() -> Vec<Gate> {
    let lanes = LANES.iter().map(|(key, ..)| Gate::Lane((*key).to_owned()));
    let limits = fixed().into_iter().map(|limit| limit.gate);
    let others = [Gate::Named(CHANGED.to_owned()), Gate::Task("work".to_owned())];
    let mut all: Vec<Gate> = limits.chain(lanes).chain(others).collect();
    all.sort();
    all.dedup();
    all
}

/// Resumes every gate of the queues and removes what was set, until Redis has answered.
pub(crate) async fn release(broker: &Broker, queues: &[QueueName], journal: &Journal) {
    for queue in queues {
        for gate in gates() {
            journal.write(0, What::Resume { queue: name_of(queue, &gate) });
            for _ in 0..TRIES_MAX {
                if broker.resume_gate(queue, &gate).await.is_ok() {
                    break;
                }
                sleep(AGAIN).await;
            }
        }
        for gate in [Gate::Queue, Gate::Named(CHANGED.to_owned())] {
            for _ in 0..TRIES_MAX {
                if broker.set_limit(queue, &gate, None).await.is_ok() {
                    break;
                }
                sleep(AGAIN).await;
            }
        }
    }
}
