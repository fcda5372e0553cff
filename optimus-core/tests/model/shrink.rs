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
        let mut chunk = parts(&steps[at]);
        while chunk > 0 {
            let mut from = 0;
            while from < parts(&steps[at]) {
                let mut fewer = steps.clone();
                take_parts(&mut fewer[at], from, chunk);
                if fails(&fewer).await {
                    steps = fewer;
                } else {
                    from += chunk;
                }
            }
            chunk /= 2;
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

fn take_parts(step: &mut Step, from: usize, count: usize) {
    let taken = from..(from + count).min(parts(step));
    match step {
        Step::Submit { plans, .. } => drop(plans.drain(taken)),
        Step::Complete { picks, .. } => drop(picks.drain(taken)),
        Step::Fail { picks, .. } => drop(picks.drain(taken)),
        Step::Release { picks, .. } => drop(picks.drain(taken)),
        _ => {}
    }
}
