//! Checks whether the workers of queues may start tasks: whether they are blocked, or quiet.

use optimus_core::{Explanation, Obstacle, QueueName};

use super::{Finding, Level};

/// How many queues of a finding are named.
const NAMED_MAX: usize = 10;

/// Finds the workers that keep the tasks of these queues waiting. A worker that serves many queues
/// is one finding, which names these queues.
pub(super) fn check<'a>(
    queues: impl Iterator<Item = (&'a QueueName, &'a Explanation)>,
) -> Vec<Finding> {
    let mut found: Vec<(&Obstacle, Vec<&QueueName>)> = Vec::new();
    for (queue, why) in queues {
        for obstacle in why.obstacles.iter().filter(|one| level(one).is_some()) {
            match found.iter_mut().find(|(known, _)| is_same(known, obstacle)) {
                Some((_, queues)) => queues.push(queue),
                None => found.push((obstacle, vec![queue])),
            }
        }
    }
    found.into_iter().filter_map(|(obstacle, queues)| finding(obstacle, &queues)).collect()
}

fn finding(obstacle: &Obstacle, queues: &[&QueueName]) -> Option<Finding> {
    let (level, check) = level(obstacle)?;
    Some(Finding::new(level, check, format!("{}: {obstacle}", names(queues))))
}

/// Returns how much it matters and the name of the check; `None` if it is not about workers.
fn level(obstacle: &Obstacle) -> Option<(Level, &'static str)> {
    match obstacle {
        Obstacle::Blocked { .. } => Some((Level::Warning, "blocked")),
        Obstacle::FewerSlots { slots: 0, .. } => Some((Level::Warning, "quiet")),
        Obstacle::FewerSlots { .. } => Some((Level::Note, "slots")),
        _ => None,
    }
}

/// Returns whether both say the same of the same workers. The times differ if a worker says how
/// long it is blocked between two reads.
fn is_same(one: &Obstacle, other: &Obstacle) -> bool {
    match (one, other) {
        (
            Obstacle::Blocked { workers, count, .. },
            Obstacle::Blocked { workers: others, count: count_of_others, .. },
        ) => workers == others && count == count_of_others,
        _ => one == other,
    }
}

fn names(queues: &[&QueueName]) -> String {
    let word = if queues.len() == 1 { "queue" } else { "queues" };
    let named: Vec<&str> = queues.iter().take(NAMED_MAX).map(|queue| queue.as_str()).collect();
    let more = match queues.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{word} {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_many_queues_is_one_finding_with_the_first_of_their_names() {
        let queues: Vec<QueueName> =
            (10..22).map(|number| QueueName::new(format!("q{number}")).unwrap()).collect();
        let quiet = || Obstacle::FewerSlots { workers: Vec::new(), count: 1, of: 1, slots: 0 };
        let all: Vec<&QueueName> = queues.iter().collect();
        let text = finding(&quiet(), &all).unwrap().text;
        assert!(text.starts_with("queues q10, q11, ") && text.contains("q19 and 2 more: "));
        let text = finding(&quiet(), &all[..1]).unwrap().text;
        assert!(text.starts_with("queue q10: "), "{text}");
    }
}
