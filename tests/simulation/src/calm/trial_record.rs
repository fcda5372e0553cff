//! The events of a trial, in order: [`Record`].

use std::collections::BTreeMap;

use optimus_testkit::history::{Event, What};

use crate::world::Setup;

/// What the checks of a trial read.
pub(super) struct Record {
    pub(super) workers: Vec<Member>,
    pub(super) weights: Vec<u32>,
    pub(super) steps: Vec<Step>,
}

/// A worker of the trial.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) process: u32,
    pub(super) setup: Setup,
}

/// One event, with its time in ns.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) what: Happened,
}

/// An event. Workers and queues are named by their places in the record.
#[derive(Clone, Copy)]
pub(super) enum Happened {
    /// A task of this queue can be claimed from now on.
    Waits {
        queue: usize,
    },
    Begins {
        queue: usize,
        worker: usize,
    },
    Ends {
        worker: usize,
    },
}

/// A task of the trial.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    pub(super) queue: usize,
    /// The time from which the task can be claimed.
    pub(super) since: u64,
}

impl Member {
    pub(super) fn serves(&self, queue: usize) -> bool {
        self.setup.serves >> queue & 1 == 1
    }
}

impl Record {
    /// Returns the record of these tasks and workers.
    pub(super) fn new(
        (workers, weights): (Vec<Member>, Vec<u32>),
        tasks: &BTreeMap<u64, Plain>,
        events: Vec<Event>,
    ) -> Self {
        let worker = |pid: u32| workers.iter().position(|worker| worker.process == pid);
        let mut steps: Vec<Step> = tasks
            .values()
            .map(|task| Step { at: task.since, what: Happened::Waits { queue: task.queue } })
            .collect();
        steps.extend(events.into_iter().filter_map(|event| {
            let worker = worker(event.pid)?;
            let what = match event.what {
                What::Begin { task, .. } => {
                    Happened::Begins { queue: tasks.get(&task)?.queue, worker }
                }
                What::End { task, .. } if tasks.contains_key(&task) => Happened::Ends { worker },
                _ => return None,
            };
            Some(Step { at: event.at, what })
        }));
        steps.sort_by_key(|step| step.at);
        Self { workers, weights, steps }
    }
    /// Returns whether this many tasks may be claimed and not begun yet.
    pub(super) fn under_way_max(&self) -> i64 {
        let slots: usize = self.workers.iter().map(|worker| worker.setup.concurrency).sum();
        i64::try_from(slots.min(256)).unwrap_or(i64::MAX)
    }
}
