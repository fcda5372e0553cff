//! Takes out of a failing sequence what it fails without.

use crate::step::Step;

/// The steps that are left when none can be taken out, nor a part of one, and it still fails.
pub(crate) async fn shrunk(
    mut steps: Vec<Step>,
    fails: impl AsyncFn(&[Step]) -> bool,
) -> Vec<Step> {
    let mut chunk = steps.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        let mut taken = false;
        while at < steps.len() {
            let end = (at + chunk).min(steps.len());
            let rest = [&steps[..at], &steps[end..]].concat();
            if fails(&rest).await {
                (steps, taken) = (rest, true);
            } else {
                at = end;
            }
        }
        if chunk > 1 {
            chunk /= 2;
        } else if !taken {
            break;
        }
    }
    for at in 0..steps.len() {
        for part in (0..parts(&steps[at])).rev() {
            let mut fewer = steps.clone();
            take_part(&mut fewer[at], part);
            if fails(&fewer).await {
                steps = fewer;
            }
        }
    }
    steps
}

/// Of how many parts a step is made that it may do without.
fn parts(step: &Step) -> usize {
    match step {
        Step::Submit { plans, .. } => plans.len(),
        Step::Complete { picks, .. } => picks.len(),
        Step::Fail { picks, .. } => picks.len(),
        Step::Release { picks, .. } => picks.len(),
        _ => 0,
    }
}

fn take_part(step: &mut Step, part: usize) {
    match step {
        Step::Submit { plans, .. } => drop(plans.remove(part)),
        Step::Complete { picks, .. } => drop(picks.remove(part)),
        Step::Fail { picks, .. } => drop(picks.remove(part)),
        Step::Release { picks, .. } => drop(picks.remove(part)),
        _ => {}
    }
}
