//! Checks the answers that operators received about a queue: [`Queues`].

use std::collections::HashMap;

use super::check::Checker;
use super::requests::{Effect, Requests};
use super::verdict::Findings;
use super::{Event, What};

/// The requests for one queue.
#[derive(Debug, Default)]
struct Asked {
    pauses: Requests,
    resumes: Requests,
}

/// The requests for all queues and limits, by name.
#[derive(Debug, Default)]
pub(super) struct Queues(HashMap<String, Asked>);

impl Queues {
    /// Adds a request or an answer.
    pub(super) fn add(&mut self, event: Event) {
        let Event { at, pid, what } = event;
        match what {
            What::Pause { queue } => self.0.entry(queue).or_default().pauses.ask(pid, at),
            What::Paused { queue } => {
                self.0.entry(queue).or_default().pauses.answer(pid, at, Effect::Done);
            }
            What::Resume { queue } => self.0.entry(queue).or_default().resumes.ask(pid, at),
            _ => {}
        }
    }
}

impl Checker<'_> {
    /// Checks that a task that was submitted while its queue was paused is claimed only after a
    /// resume.
    pub(super) fn pauses(&self, queues: &Queues, findings: &mut Findings) {
        let Some(invoked) = self.account.invoked else { return };
        let Some(run) = self.account.executions.first() else { return };
        let Some((queue, _)) = run.id.split_once('/') else { return };
        let limits = self.account.limits.iter().map(|(name, _)| name.as_str());
        let lane = self.account.lane.iter().map(|lane| lane.name.as_str());
        for name in limits.chain(lane).chain([queue]) {
            let Some(Asked { pauses, resumes }) = queues.0.get(name) else { continue };
            let claimed = pauses.answered(Effect::Done).any(|(pause, told)| {
                told < invoked.at
                    && !resumes.may_come_within(pause.asked, run.begun)
                    && !self.acts.rolled_back(pause.asked, run.begun)
            });
            if claimed {
                findings.add(self.task, format!("was claimed while {name} was paused"));
            }
        }
    }
}
