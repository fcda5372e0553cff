//! Sequences that have found bugs.

use crate::bench::Bench;

use super::{
    attempt,
    step::{Callback, Step},
};

/// A run that a worker gives back is due since its birth, and a gate that a permit leaves lets the
/// queue be looked at now. The later time replaced the earlier one.
pub(crate) async fn a_run_and_a_permit_come_back(first: Bench) -> Result<(), String> {
    let (queue, worker) = (0, 1);
    let submit = |limits, count, delay_ms| Step::Submit { queue, limits, cost: 1, count, delay_ms };
    let steps = [
        submit(5, 2, 3_299),
        submit(1, 4, 0),
        Step::Gathered { queue, key: 2, count: 1 },
        Step::Lose { queue, worker },
        Step::Claim { queue, worker, want: 128 },
        Step::Release { queue, worker, picks: vec![96, 72, 26], snooze_ms: None },
    ];
    attempt(&[first.sibling("one"), first.sibling("two")], &steps).await
}

/// The end of a member frees a permit, so its gate lets the queue be looked at now, and a task that
/// is due later. That later time replaced the earlier one.
pub(crate) async fn a_permit_and_a_delayed_task_come_free(first: Bench) -> Result<(), String> {
    let callback = Callback { queue: 0, policy: 2, delay_ms: 2_115 };
    let steps = [
        Step::Submit { queue: 0, limits: 2, cost: 1, count: 3, delay_ms: 0 },
        Step::Group { queue: 0, members: 1, places: 46, policy: 0, limits: 1, callback },
    ];
    attempt(&[first.sibling("one"), first.sibling("two")], &steps).await
}
