//! Why tasks wait, as somebody may see it: [`explained()`].

use optimus_core::{Explanation, LimitDetails, Obstacle, Prerequisite};

use crate::{
    seat::Seat,
    view::{line_shown, pause_shown},
};

/// Returns a line for each obstacle. A pause has the error of the task that has asked for it.
pub(super) fn explained(seat: &Seat, mut found: Explanation) -> Vec<String> {
    // The member that failed may be of a queue that is not theirs.
    found.obstacles.retain(|obstacle| match obstacle {
        Obstacle::LostMember(lost) => seat.sees(lost.id.queue()).is_ok(),
        // So may be what a task waits for through others.
        Obstacle::Origin { prerequisite, .. } => match &prerequisite.prerequisite {
            Prerequisite::Task(id) => seat.sees(id.queue()).is_ok(),
            Prerequisite::Key { queue, .. } => seat.sees(queue).is_ok(),
        },
        _ => true,
    });
    for obstacle in &mut found.obstacles {
        if let Obstacle::Limit(LimitDetails { shut: Some(shut), .. }) = obstacle {
            *shut = pause_shown(shut, seat.payloads());
        }
    }
    line_shown(&found.to_string(), seat.payloads()).lines().map(str::to_owned).collect()
}
