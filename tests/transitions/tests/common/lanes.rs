//! Tasks of lanes, and what a lane has.

use std::num::NonZeroU16;

use optimus_core::{Lane, LaneFailure, Lease, Submit, TaskId, broker::Completion};
use redis::cmd;

use crate::{
    acts::done,
    bench::Bench,
    jobs::{job, ready_at},
};

/// A lane of this width.
pub(crate) fn lane(key: &str, width: u16) -> Lane {
    let width = NonZeroU16::new(width).expect("a lane has room for a task");
    Lane { width, ..Lane::new(key) }
}

/// A lane of width 1 that a dead task blocks.
pub(crate) fn blocking(key: &str) -> Lane {
    Lane { on_failure: LaneFailure::Block, ..Lane::new(key) }
}

/// A report of success of a task of a lane.
pub(crate) fn done_in(lease: &Lease, lane: &Lane) -> Completion {
    Completion { lane: Some(lane.clone()), ..done(lease) }
}

impl Bench {
    /// Submits a plain job of a lane.
    pub(crate) async fn add_in(&self, at: u64, lane: &Lane) -> TaskId {
        self.add_call_in(at, lane, job()).await
    }

    /// Submits a call in a lane.
    pub(crate) async fn add_call_in(&self, at: u64, lane: &Lane, call: impl Submit) -> TaskId {
        let task = ready_at(at, call).in_lane(lane.clone());
        let id = task.id().clone();
        self.submit(at, &[task]).await;
        id
    }

    /// The tasks of a lane with their scores, in order.
    pub(crate) async fn lane(&self, key: &str) -> Vec<(String, i64)> {
        let key = self.key(&format!("lane:{key}"));
        self.raw(cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES")).await
    }

    /// Fails unless the lane has exactly these tasks with these scores.
    pub(crate) async fn assert_lane(&self, key: &str, expected: &[(&TaskId, i64)]) {
        let expected: Vec<_> = expected.iter().map(|(id, at)| (id.stored(), *at)).collect();
        assert_eq!(self.lane(key).await, expected, "the lane {key}");
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }
}
