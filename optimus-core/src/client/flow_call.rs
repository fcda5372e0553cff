//! Decides whether one call can store a whole flow: [`can_go_along`].

use std::collections::BTreeSet;

use crate::{id::QueueName, submission::Submission};

/// The limits of a flow that is stored by one call.
const STEPS_IN_CALL: usize = 500;
const STEPS_BYTES: usize = 1024 * 1024;

/// Returns whether the first step may be stored in the same call as the others: then it can't start
/// without them.
pub(super) fn can_go_along(first: &Submission, others: &[Submission]) -> bool {
    let queues: BTreeSet<&QueueName> = others.iter().map(|task| task.id.queue()).collect();
    let is_alone = queues.iter().all(|queue| *queue == first.id.queue());
    let bytes: usize = others.iter().chain([first]).map(Submission::bytes).sum();
    is_alone
        && others.len() < STEPS_IN_CALL
        && bytes < STEPS_BYTES
        && others.iter().all(|task| task.biz_id.is_none())
}
