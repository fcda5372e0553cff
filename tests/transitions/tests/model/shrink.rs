//! Removes steps of a failing sequence that the failure does not need.

use crate::step::Step;

/// Removes steps while the sequence still fails; ends as [`shrunk`] does.
pub(crate) async fn without_spare_steps<S: Clone>(
    steps: Vec<S>,
    tries_max: u32,
    fails: impl AsyncFn(&[S]) -> bool,
) -> Vec<S> {
    let mut shrinking = Shrinking { steps, fails, tries_left: tries_max };
    while shrinking.take_steps().await {}
    shrinking.steps
}

/// Removes steps, and parts of steps, while the sequence still fails; ends when nothing more can be
/// removed, or after `tries_max` tries.
pub(crate) async fn shrunk(
    steps: Vec<Step>,
    tries_max: u32,
    fails: impl AsyncFn(&[Step]) -> bool,
) -> Vec<Step> {
    let mut shrinking = Shrinking { steps, fails, tries_left: tries_max };
    while shrinking.take_steps().await {}
    for at in 0..shrinking.steps.len() {
        shrinking.take_parts(at).await;
    }
    shrinking.steps
}

struct Shrinking<S, F> {
    /// The shortest sequence so far that fails.
    steps: Vec<S>,
    fails: F,
    tries_left: u32,
}

impl<S: Clone, F: AsyncFn(&[S]) -> bool> Shrinking<S, F> {
    /// Removes steps, beginning with many at once. Returns `true` if another round may remove more.
    async fn take_steps(&mut self) -> bool {
        let (mut count, before) = (self.steps.len().div_ceil(2), self.steps.len());
        while count > 0 {
            let mut at = 0;
            while at < self.steps.len() {
                let end = (at + count).min(self.steps.len());
                let rest = [&self.steps[..at], &self.steps[end..]].concat();
                if !self.keep_if_fails(rest).await {
                    at = end;
                }
            }
            count /= 2;
        }
        self.steps.len() < before
    }

    async fn keep_if_fails(&mut self, steps: Vec<S>) -> bool {
        self.tries_left = self.tries_left.saturating_sub(1);
        let fails = self.tries_left > 0 && (self.fails)(&steps).await;
        if fails {
            self.steps = steps;
        }
        fails
    }
}

impl<F: AsyncFn(&[Step]) -> bool> Shrinking<Step, F> {
    /// Removes parts of one step, beginning with many at once.
    async fn take_parts(&mut self, at: usize) {
        let mut count = parts(&self.steps[at]);
        while count > 0 {
            let mut from = 0;
            while from < parts(&self.steps[at]) {
                let mut fewer = self.steps.clone();
                take_parts(&mut fewer[at], from, count);
                if !self.keep_if_fails(fewer).await {
                    from += count;
                }
            }
            count /= 2;
        }
    }
}

/// Returns how many parts of a step can be removed.
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
