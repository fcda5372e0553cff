//! Sequences that have found bugs.

use crate::bench::Bench;

use super::{attempt, step::Step};

/// A run that a worker gives back is due since its birth, and a gate that a permit leaves lets the
/// queue be looked at now. The later time replaced the earlier one.
pub(crate) async fn a_run_and_a_permit_come_back(first: Bench) -> Result<(), String> {
    let (queue, worker) = (0, 1);
    let submit = |limits, count, delay_ms| Step::Submit { queue, limits, count, delay_ms };
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
