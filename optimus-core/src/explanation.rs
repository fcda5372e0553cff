//! What keeps tasks waiting, and its text: [`Explanation`].

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    gate::Gate, group_details::MemberPlace, limit::LimitDetails, obstacle::Obstacle,
    obstacle_text::time_text,
};

/// What is between a task and its start, in the order in which the task passes it. The same for a
/// queue or a worker: what keeps its tasks from being claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// All that is known to be in the way. If this is empty, the next claim takes the task.
    pub obstacles: Vec<Obstacle>,
    /// The task does not start before this time, by Redis' clock; `None` if no obstacle has a time.
    pub not_before: Option<DateTime<Utc>>,
    /// The place of the task in its [group](fn@crate::group), if it is a member of one.
    pub member: Option<MemberPlace>,
}

impl Explanation {
    /// What keeps one task waiting. It waits until the last obstacle has ended.
    pub(crate) fn of(obstacles: Vec<Obstacle>) -> Self {
        let not_before = obstacles.iter().filter_map(Obstacle::ends).max();
        Self { obstacles, not_before, member: None }
    }

    /// Returns this explanation for a task with that place in a group.
    pub(crate) fn at(self, member: Option<MemberPlace>) -> Self {
        Self { member, ..self }
    }

    /// What keeps the tasks of a queue waiting. A pause of the queue keeps all of them. The other
    /// obstacles keep different tasks, so the first one that ends lets a task start.
    pub(crate) fn of_queue(obstacles: Vec<Obstacle>) -> Self {
        let is_whole = |obstacle: &&Obstacle| {
            matches!(obstacle, Obstacle::Limit(LimitDetails { gate: Gate::Queue, .. }))
        };
        let of_all = obstacles.iter().filter(is_whole).filter_map(Obstacle::ends).max();
        let is_empty = obstacles.iter().any(|one| matches!(one, Obstacle::NothingReady { .. }));
        let parts = || obstacles.iter().filter(|one| !is_whole(one) && one.is_about_tasks());
        let all_end = is_empty && parts().all(|one| one.ends().is_some());
        let first = parts().filter_map(Obstacle::ends).min().filter(|_| all_end);
        Self { not_before: of_all.max(first), obstacles, member: None }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.obstacles.is_empty() {
            f.write_str("nothing is in the way: the next claim takes it")?;
        }
        for (number, obstacle) in (1..).zip(&self.obstacles) {
            let line_break = if number == 1 { "" } else { "\n" };
            write!(f, "{line_break}{number}. {obstacle}")?;
        }
        // An obstacle that prints this time says it already.
        if let Some(at) = self.not_before
            && !self.obstacles.iter().any(|one| one.time_in_text() == Some(at))
        {
            write!(f, "\nnot before {}", time_text(at))?;
        }
        match &self.member {
            Some(place) => write!(f, "\n{place}"),
            None => Ok(()),
        }
    }
}
#[cfg(test)]
#[path = "explanation_tests.rs"]
mod tests;
