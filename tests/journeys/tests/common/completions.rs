//! The report of a task that a test has claimed without a worker.

use std::time::Duration;

use optimus_core::{
    Lease, Task, WorkerId,
    broker::{Claimed, Completion},
};

/// Returns the success of the first attempt at the first task that was claimed.
pub fn success_of<T: Task>(claimed: &Claimed, worker: &WorkerId) -> Completion {
    let id = claimed.grants.first().expect("a task was granted").id.clone();
    Completion {
        lease: Lease { id, worker: worker.clone(), token: claimed.token },
        task: T::NAME,
        biz_id: None,
        attempt: 1,
        took: Duration::ZERO,
        ended_ms: claimed.now_ms,
        lane: None,
        outcome_ttl: None,
        member: None,
        result: None,
        has_sides: false,
    }
}
