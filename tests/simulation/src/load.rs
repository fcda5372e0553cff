//! What the users of a run submit: [`Load`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use optimus_core::{Prerequisite, PrerequisiteFailure, QueueName, TaskId};

/// The most queues of a load with flows. Its drain takes long, and workers that serve many queues
/// have much to do meanwhile.
const QUEUES_MAX: usize = 6;

/// What the users of a run submit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Tasks that have nothing to do with one another.
    #[default]
    Plain,
    /// Also tasks of lanes, with limits and prerequisites, calls that run together, and chains and
    /// groups of tasks.
    Flows,
}

impl Load {
    /// Draws a load. The random numbers are apart from those of the run, so that changes of the
    /// other load do not change a seed with a plain load.
    pub fn of(seed: u64, queues: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed.rotate_left(32) ^ 0x666c_6f77);
        if random.bool() && queues <= QUEUES_MAX { Self::Flows } else { Self::Plain }
    }
}

/// A task that others wait for, and that is not submitted yet.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) number: u64,
    pub(crate) queue: QueueName,
    pub(crate) name: Prerequisite,
}

/// A group that was submitted.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: TaskId,
    pub(crate) policy: PrerequisiteFailure,
    /// The numbers of its members, with all their steps.
    pub(crate) tasks: Vec<u64>,
    /// The task after the group, unless it runs with each end of the group.
    pub(crate) callback: Option<u64>,
}

/// What users know of flows.
#[derive(Debug, Default)]
pub(crate) struct FlowsKnown {
    promises: Mutex<Vec<Promise>>,
    groups: Mutex<Vec<Known>>,
}

impl FlowsKnown {
    pub(crate) fn promises(&self) -> MutexGuard<'_, Vec<Promise>> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Vec<Known>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
