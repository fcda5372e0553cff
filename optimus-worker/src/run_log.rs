//! How the calls of a run are logged: one event for all that end in the same way.

use std::{mem, sync::Arc};

use optimus_core::TaskId;
use tracing::Level;

use crate::{
    attempts::{Attempt, Ended, Line},
    decide_outcome::Decision,
    outcome_log::Outcome,
};

/// How many other calls an event names.
const OTHERS_MAX: usize = 9;

/// The calls for which an event is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) count: usize,
    /// The ids of some of them, without the one that the event is about.
    others: Vec<TaskId>,
}

impl Calls {
    /// Returns the call that the event is about.
    pub(crate) fn one() -> Self {
        Self { count: 1, others: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: &TaskId) {
        self.count += 1;
        if self.others.len() < OTHERS_MAX {
            self.others.push(id.clone());
        }
    }

    /// Returns the ids of the others; `None` if there are none.
    pub(crate) fn others(&self) -> Option<String> {
        let ids: Vec<String> = self.others.iter().map(TaskId::to_string).collect();
        (!ids.is_empty()).then(|| ids.join(", "))
    }
}

/// Stores how the calls of a run ended. The first that ends in some way is logged for all that do.
pub(crate) fn set_ended(ends: &[(Arc<Attempt>, Option<Decision>)], success: Level) {
    let run = ends.first().map(|(leader, _)| leader.started_at.elapsed()).unwrap_or_default();
    let outcomes: Vec<_> =
        ends.iter().map(|(_, decision)| Outcome::of(decision.as_ref(), success)).collect();
    let kind = |outcome: &Outcome| (mem::discriminant(outcome), outcome.reason());
    // There are few ways to end.
    let mut groups: Vec<(_, usize, Calls)> = Vec::new();
    for (position, ((call, _), outcome)) in ends.iter().zip(&outcomes).enumerate() {
        match groups.iter_mut().find(|(of, ..)| *of == kind(outcome)) {
            Some((_, _, calls)) => calls.add(&call.lease.id),
            None => groups.push((kind(outcome), position, Calls::one())),
        }
    }
    for (position, ((call, _), outcome)) in ends.iter().zip(outcomes).enumerate() {
        let at = groups.iter().position(|(_, first, _)| *first == position);
        let line = at.map_or(Line::OfAnother, |at| Line::OfRun(groups.swap_remove(at).2));
        call.set_ended_in_run(Ended { outcome, run, line });
    }
}
