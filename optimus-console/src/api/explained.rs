//! Why tasks wait, as somebody may see it: [`explained()`], [`before_retry()`].

use optimus_core::{
    Explanation, LimitDetails, Obstacle, Prerequisite, PrerequisiteDetails, TaskId,
};

use crate::{
    seat::Seat,
    view::{line_shown, pause_shown},
};

/// Returns a line for each obstacle, without the tasks of queues that are not theirs. A pause has
/// the error of the task that has asked for it.
pub(super) fn explained(seat: &Seat, mut found: Explanation) -> Vec<String> {
    let hidden = hide(seat, &mut found);
    for obstacle in &mut found.obstacles {
        if let Obstacle::Limit(LimitDetails { shut: Some(shut), .. }) = obstacle {
            *shut = pause_shown(shut, seat.payloads());
        }
    }
    let text = line_shown(&found.to_string(), seat.payloads());
    // Without obstacles the text says that nothing is in the way.
    let is_told = hidden == 0 || !found.obstacles.is_empty();
    let lines = text.lines().filter(|_| is_told).map(str::to_owned);
    lines.chain(hidden_text(hidden)).collect()
}

/// Returns what to do before a task is retried that has ended. The page shows how it has ended.
pub(super) fn before_retry(seat: &Seat, mut found: Explanation) -> Vec<String> {
    found.obstacles.retain(|one| !matches!(one, Obstacle::Ended { .. }));
    if found.obstacles.is_empty() { Vec::new() } else { explained(seat, found) }
}

/// Leaves out the tasks of other queues. Returns for how many of them the task itself waits.
fn hide(seat: &Seat, found: &mut Explanation) -> usize {
    let sees = |id: &TaskId| seat.sees(id.queue()).is_ok();
    let sees_one = |prerequisite: &Prerequisite| match prerequisite {
        Prerequisite::Task(id) => sees(id),
        Prerequisite::Key { queue, .. } => seat.sees(queue).is_ok(),
    };
    let may_see = |found: &PrerequisiteDetails| sees_one(&found.prerequisite);
    let is_hidden =
        |one: &&Obstacle| matches!(one, Obstacle::Prerequisite(found) if !may_see(found));
    let hidden = found.obstacles.iter().filter(is_hidden).count();
    found.obstacles.retain_mut(|obstacle| match obstacle {
        Obstacle::Prerequisite(found) => may_see(found),
        Obstacle::Origin { from, prerequisite, .. } => sees_one(from) && may_see(prerequisite),
        Obstacle::Cycle { path } => path.iter().all(sees),
        Obstacle::LostMember(lost) => sees(&lost.id) && sees(&lost.group),
        Obstacle::Prerequisites { unmet, .. } => {
            unmet.retain(may_see);
            true
        }
        _ => true,
    });
    found.member.take_if(|place| !sees(&place.group));
    hidden
}

fn hidden_text(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("it waits for 1 task of a queue that you do not see".to_owned()),
        _ => Some(format!("it waits for {count} tasks of queues that you do not see")),
    }
}
